"""The rule browser: areas and rules left, a rule's page right, its relations below. Reads rules, changes none."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from functools import partial
from itertools import groupby
from typing import ClassVar, NamedTuple

from markdown_it import MarkdownIt
from rich.text import Text
from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Input, Markdown, OptionList, Tree
from textual.widgets.tree import TreeNode

from logdoc.engine import Engine
from logdoc.render.rule_page import plain, rule_page
from logdoc.rulebase.search import rules_with
from logdoc.tui.detail_tabs import Page
from logdoc.tui.folding import PickList
from logdoc.tui.keys import Command, SpeakingScreen, bind
from logdoc.tui.marks import KIND_SIGNS, MUTED, data, joined, printable, rich_style
from logdoc.tui.messages import Copy
from logdoc.tui.phrases import Voice
from logdoc.tui.room import KeyFooter, TooSmall
from logdoc.tui.try_screen import TryScreen
from logdoc.types.rule import Rule

RULE_LINK = "rule:"
TURN_SECONDS = 0.05  # of keys, before a page is turned: that takes a while
_RELATION = re.compile(r"(?m)^- (?:masks|explained_by): .*$")
_BLOCK = re.compile(r"(?ms)^```(\n.*?^)```$")
_NAME = re.compile(r"`([\w.*?\[\]-]+)`")


class Related(NamedTuple):
    """A rule that another one names, or that names it."""

    relation: str
    rule: Rule


class RuleTree(Tree[str]):
    """Areas, and the rules in them; each leaf carries its rule's id."""

    BINDINGS: ClassVar[list[BindingType]] = [
        bind("down,j", "cursor_down", "list.down"),
        bind("up,k", "cursor_up", "list.up"),
        bind("enter", "select_cursor", "list.select"),
    ]


class RelatedList(PickList):
    """The rules related to the one that is shown."""


class RuleSearch(Input):
    """What the listed rules must speak of."""

    BINDINGS: ClassVar[list[BindingType]] = [
        bind("down", "app.focus_next", "search.down"),
        bind("escape", "screen.back", "back"),
    ]


class RulesScreen(SpeakingScreen):
    """Every active rule, to be read."""

    ESCAPE_TO_MINIMIZE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        bind("slash", "search", "rules.search", show=True, priority=True),
        bind("p", "paste", "rules.paste", show=True),
        bind("b,backspace", "previous", "rules.previous", show=True),
        bind("c", "copy", "rules.copy"),
        bind("z", "zoom", "zoom"),
        bind("escape", "back", "back", show=True),
    ]

    def __init__(self, engine: Engine, voice: Voice, rule_id: str | None = None) -> None:
        super().__init__(voice)
        self._engine = engine
        self._rules = engine.rules.active()
        self._wanted = rule_id
        self.shown: str | None = None
        self._area: str | None = None  # whose rules are listed on the page, instead of a rule
        self._words = ""
        self._page = ""
        self._turning = False  # is a page being put on the screen?
        self._before: list[str] = []
        self._related: list[Related] = []

    def compose(self) -> ComposeResult:
        with Horizontal(id="rules"):
            with Vertical(id="rule-list"):
                yield RuleSearch(id="rule-search", compact=True)
                tree = RuleTree("", id="rule-tree")
                tree.show_root = False
                tree.guide_depth = 2
                yield tree
            with Vertical(id="rule-box"):
                with Page(id="rule-page"):
                    yield Markdown(id="rule-text", open_links=False, parser_factory=_parser)
                yield RelatedList("related")
        yield KeyFooter()
        yield TooSmall(self.voice)

    def on_mount(self) -> None:
        self.speak()
        self.set_focus(self.query_one(RuleTree))

    def speak(self) -> None:
        """Say everything again in the language of the moment."""
        super().speak()
        self.query_one(TooSmall).tell()
        search = self.query_one(RuleSearch)
        search.placeholder = self.voice.say("rules.placeholder", n=len(self._rules))
        self.query_one("#related").border_title = self.voice.say("rules.related")
        self._list(search.value)
        area = next((node for node in self.query_one(RuleTree).root.children if node.data == self._area), None)
        if area is not None:
            self._show_area(area)
            self.call_after_refresh(self._move_cursor, area)
        else:
            self._show_found(self.shown or self._wanted)

    def commands(self) -> Iterator[Command]:
        """Every rule by its id and title."""
        for rule in self._rules:
            title = plain(rule.title.in_language(self.voice.language))
            yield Command(rule.id, title, partial(self.show, rule.id))

    def show(self, rule_id: str, *, remember: bool = True) -> None:
        """Show the page of a rule."""
        rule = self._engine.rules.rules.get(rule_id)
        if rule is None:
            self.notify(self.voice.say("rules.unknown", rule=rule_id), markup=False, severity="warning")
            return
        if remember and self.shown is not None and self.shown != rule_id:
            self._before.append(self.shown)
        self.shown, self._area = rule_id, None
        self._show_page(linked(rule_page(rule, self.voice.language)), related(rule, self._rules))
        self._point_at(rule_id)

    def _show_found(self, wanted: str | None) -> None:
        """Show the wanted rule if the search finds it, else the first one found; say so if there is none."""
        found = [leaf.data for area in self.query_one(RuleTree).root.children for leaf in area.children if leaf.data]
        if found:
            self.show(wanted if wanted in found else found[0], remember=False)
        else:
            self.shown = self._area = None
            self._show_page(self.voice.say("rules.none"))

    def _show_area(self, node: TreeNode[str]) -> None:
        """Show what the rules listed under an area are called."""
        self.shown, self._area = None, node.data
        rules = [self._engine.rules.rules[leaf.data] for leaf in node.children if leaf.data]
        rows = [
            f"- [`{rule.id}`]({RULE_LINK}{rule.id}) {plain(rule.title.in_language(self.voice.language))}"
            for rule in rules
        ]
        self._show_page("\n".join([f"# {node.data}", "", *rows]))

    def _show_page(self, page: str, relations: Iterable[Related] = ()) -> None:
        if page != self._page and not self._turning:
            self._turning = True
            self._turn_pages()
        self._page = page
        self._related = list(relations)
        listed = self.query_one(RelatedList)
        listed.fill([self._relation(one) for one in self._related])
        listed.display = bool(self._related)

    @work(group="page")
    async def _turn_pages(self) -> None:
        """Put the page on the screen, and the next one if another was asked for meanwhile; those between are not."""
        shown = None
        while shown != self._page:
            await asyncio.sleep(TURN_SECONDS)
            shown = self._page
            await self.query_one("#rule-text", Markdown).update(shown)
            self.query_one("#rule-page").scroll_home(animate=False)
        self._turning = False

    def _relation(self, one: Related) -> Content:
        word = data(f"{self.voice.say('relation.' + one.relation)}: ", MUTED)
        title = data("  " + plain(one.rule.title.in_language(self.voice.language)))
        return joined(word, data(one.rule.id, "bold"), title)

    def _list(self, words: str) -> None:
        """List the rules that speak of these words, by area; new words open all areas, none closes them."""
        tree = self.query_one(RuleTree)
        opened = {node.data for node in tree.root.children if node.is_expanded}
        same, self._words = words == self._words, words
        tree.clear()
        for area, rules in groupby(rules_with(words, self._rules), key=lambda rule: rule.area):
            listed = list(rules)
            expand = area in opened if same else bool(words)
            node = tree.root.add(Text(f"{area} ({len(listed)})", style="bold"), area, expand=expand)
            for rule in listed:
                sign, style = KIND_SIGNS[rule.kind]
                label = Text.assemble((f"{sign} ", rich_style(style, self.app)), printable(rule.id.partition(".")[2]))
                node.add_leaf(label, data=rule.id)

    def _point_at(self, rule_id: str) -> None:
        """Put the tree's cursor on a rule, if it is listed."""
        tree = self.query_one(RuleTree)
        for area in tree.root.children:
            for leaf in area.children:
                if leaf.data == rule_id and tree.cursor_node is not leaf:
                    area.expand()
                    self.call_after_refresh(self._move_cursor, leaf)

    def _move_cursor(self, node: TreeNode[str]) -> None:
        tree = self.query_one(RuleTree)
        with tree.prevent(Tree.NodeHighlighted):
            if tree.last_line >= 0:  # asking lays out the lines; until then no node of a new list has one
                tree.move_cursor(node)

    def on_input_changed(self, event: Input.Changed) -> None:
        self._list(event.value)
        self._show_found(self.shown)

    def on_input_submitted(self) -> None:
        """Enter goes to the rules found."""
        self.set_focus(self.query_one(RuleTree))

    def on_tree_node_highlighted(self, event: Tree.NodeHighlighted[str]) -> None:
        node = event.node
        if node.data is None or node.data in (self.shown, self._area) or not self.query_one(RuleTree).has_focus:
            return
        if node.allow_expand:
            self._show_area(node)
        else:
            self.show(node.data)

    def on_tree_node_selected(self, event: Tree.NodeSelected[str]) -> None:
        if event.node.data and not event.node.allow_expand:
            self.show(event.node.data)
            self.set_focus(self.query_one("#rule-page"))

    @on(OptionList.OptionSelected, "#related")
    def _related_chosen(self, event: OptionList.OptionSelected) -> None:
        self.show(self._related[event.option_index].rule.id)
        self.set_focus(self.query_one("#rule-page"))

    def on_markdown_link_clicked(self, event: Markdown.LinkClicked) -> None:
        """A relation shows its rule (a pattern lists what fits); an address is copied: there may be no browser."""
        name = event.href.removeprefix(RULE_LINK)
        if name == event.href:
            self.post_message(Copy(event.href))
        elif name in self._engine.rules.rules:
            self.show(name)
        else:
            self.query_one(RuleSearch).value = name.partition("*")[0]

    def action_search(self) -> None:
        self.set_focus(self.query_one(RuleSearch))

    def action_paste(self) -> None:
        """Let the user try a line; the rule chosen there is shown."""
        self.app.push_screen(TryScreen(self._engine, self.voice), self._tried)

    def _tried(self, rule_id: str | None) -> None:
        if rule_id is not None:
            self.show(rule_id)

    def action_previous(self) -> None:
        if self._before:
            self.show(self._before.pop(), remember=False)

    def action_copy(self) -> None:
        if self.shown is not None:
            self.post_message(Copy(self.shown))

    def action_zoom(self) -> None:
        """Give the whole screen to the part that has the keys, or take it back."""
        if self.maximized is not None:
            self.minimize()
        else:
            self.action_maximize()

    def action_back(self) -> None:
        """Undo one thing: the zoom, then the search; then the keys go to the tree, then back to the log, if any."""
        search, tree = self.query_one(RuleSearch), self.query_one(RuleTree)
        if self.maximized is not None:
            self.minimize()
        elif search.value:
            search.value = ""
            self.set_focus(tree)
        elif not tree.has_focus:
            self.set_focus(tree)
        elif len(self.app.screen_stack) > 2:
            self.dismiss()


def _parser() -> MarkdownIt:
    """Markdown without HTML: a placeholder such as `<rank>` is text."""
    return MarkdownIt("gfm-like", {"html": False})


def linked(page: str) -> str:
    """A rule's page with the rules it names as links, and its blocks said to be text, which nobody then guesses at."""
    page = _BLOCK.sub(r"```text\1```", page)
    return _RELATION.sub(lambda line: _NAME.sub(rf"[`\1`]({RULE_LINK}\1)", line[0]), page)


def related(rule: Rule, rules: Sequence[Rule]) -> Iterator[Related]:
    """The rules that `rule` names, and those that name it; each once a relation."""
    others = [other for other in rules if other is not rule]
    yield from (Related("masks", other) for other in others if _fits(other, rule.masks))
    yield from (Related("explained_by", other) for other in others if _fits(other, _explanations(rule)))
    yield from (Related("masked_by", other) for other in others if _fits(rule, other.masks))
    yield from (Related("explains", other) for other in others if _fits(rule, _explanations(other)))


def _explanations(rule: Rule) -> list[str]:
    return [explanation.rule for explanation in rule.explanations]


def _fits(rule: Rule, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(rule.id, pattern) for pattern in patterns)
