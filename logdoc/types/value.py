"""`dataclass` for the values that travel between the rooms: the standard library's, made at a tenth of the cost."""

from logdoc.types.made import field_defaults

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dataclasses import asdict as asdict
    from dataclasses import dataclass as dataclass
    from dataclasses import field as field
    from dataclasses import replace as replace
else:
    from logdoc.types.made import asdict, dataclass, field, replace

__all__ = ["asdict", "dataclass", "field", "field_defaults", "replace"]
