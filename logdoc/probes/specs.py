"""The probes by id: what each does, the facts it gives, and how long it may take. Data only; runs nothing."""

from __future__ import annotations

from dataclasses import dataclass

from logdoc.types.rule import Text


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeSpec:
    """One probe. `facts` are ids; `*` stands for a card's number or a name. `seconds`: the most it may take.

    An active probe does something (opens a connection, uses a GPU) and runs only when asked for; its `does` is the
    sentence that is said first. `needs`: what it cannot do without, for one that its id alone does not start.
    """

    id: str
    does: Text
    facts: tuple[str, ...]
    seconds: float
    active: bool = False
    needs: str = ""


def _probe(id: str, en: str, zh: str, facts: str, seconds: float, active: bool = False, needs: str = "") -> ProbeSpec:
    does = Text(en=en, zh=zh)
    return ProbeSpec(id=id, does=does, facts=tuple(facts.split()), seconds=seconds, active=active, needs=needs)


PROBES: tuple[ProbeSpec, ...] = (
    _probe(
        "torch-build",
        "Reads torch's files, then imports torch in a child of the job's Python: version, CUDA, NCCL, backends.",
        "读取 torch 的文件，再在作业所用 Python 的子进程中导入 torch：版本、CUDA、NCCL、后端。",
        "python.version python.path torch.installed torch.path torch.version torch.git torch.local_version "
        "torch.has_cuda torch.cuda torch.cuda_major torch.hip torch.cpu_wheel torch.has_nccl torch.has_gloo "
        "torch.has_mpi torch.has_distributed torch.backends torch.nccl nccl.version torch.cudnn torch.cudnn_error "
        "torch.arch_list "
        "torch.arch_covers_gpu torch.cuda_available torch.cuda_error torch.device_count torch.duplicates "
        "torch.duplicate_paths torch.installer torch.mixed_installers torch.wheel torch.metadata_version "
        "torch.metadata_copies torch.import_ok torch.import_error lib.loaded_nccl lib.loaded_cudart "
        "lib.loaded_cudnn",
        20.0,
    ),
    _probe(
        "gpu-list",
        "Asks NVML or nvidia-smi which GPUs there are, their driver and modes.",
        "通过 NVML 或 nvidia-smi 查询 GPU 数量、型号、驱动和模式。",
        "gpu.count gpu.name gpu.names gpu.driver gpu.cuda_driver gpu.cuda_driver_major gpu.sm gpu.compute_mode "
        "gpu.mig gpu.mig_devices gpu.persistence gpu.vgpu gpu.mixed_models gpu.visible gpu.pci_count "
        "gpu.driver_loaded gpu.kernel_module gpu.open_module gpu.device_nodes gpu.driver_error gpu.driver_usable "
        "gpu.unanswered_seconds gpu.driver_mismatch gpu.nvml_missing gpu.lost gpu.*.name gpu.*.uuid gpu.*.bus_id "
        "gpu.*.sm",
        15.0,
    ),
    _probe(
        "gpu-memory",
        "Asks how much memory each GPU has, uses and has left.",
        "查询每块 GPU 的显存总量、已用和剩余。",
        "gpu.total gpu.used gpu.free gpu.used_fraction gpu.fullest gpu.*.total gpu.*.used gpu.*.free",
        15.0,
    ),
    _probe(
        "gpu-processes",
        "Asks which processes hold GPU memory.",
        "查询哪些进程占用显存。",
        "gpu.processes gpu.process_list gpu.other_process_bytes gpu.unattributed_bytes",
        15.0,
    ),
    _probe(
        "gpu-health",
        "Reads ECC counters, remapped rows, throttling, PCIe and NVLink state, and Xids from the kernel log.",
        "读取 ECC 计数、行重映射、降频、PCIe 与 NVLink 状态，以及内核日志中的 Xid。",
        "gpu.ecc_uncorrected gpu.ecc_uncorrected_aggregate gpu.remapped_rows gpu.remapped_rows_pending "
        "gpu.remapped_rows_failure "
        "gpu.throttle gpu.pcie_width gpu.pcie_width_max gpu.pcie_gen gpu.pcie_gen_max gpu.pcie_narrow gpu.nvlink_up "
        "gpu.nvlink_down gpu.xids gpu.xid_count gpu.last_xid gpu.last_xid_bus gpu.last_xid_age",
        15.0,
    ),
    _probe(
        "fabric",
        "Asks whether NVSwitch's fabric manager and IMEX run, and the fabric's state.",
        "查询 NVSwitch 的 fabric manager 与 IMEX 是否运行，以及 fabric 状态。",
        "fabric.nvswitches fabric.manager_active fabric.manager_version fabric.kernel_module fabric.version_matches "
        "fabric.state fabric.status imex.active imex.channels imex.domain_state imex.nodes imex.nodes_not_ready",
        15.0,
    ),
    _probe(
        "topology",
        "Reads nvidia-smi's link and peer-access tables, the PCI bridges' ACS and the IOMMU.",
        "读取 nvidia-smi 的拓扑与点对点表、PCI 桥的 ACS 和 IOMMU。",
        "topo.worst topo.best topo.matrix topo.nvlink topo.nics topo.gpu_nic topo.p2p_ok topo.p2p_reason "
        "topo.p2p_bad_pairs topo.p2p_read topo.p2p_write topo.p2p_nvlink topo.p2p_pcie acs.enabled acs.bridges "
        "iommu.present iommu.enabled iommu.type numa.nodes topo.gpu_numa",
        15.0,
    ),
    _probe(
        "rdma",
        "Reads InfiniBand, RoCE and EFA devices, ports, GIDs and fault counters from sysfs.",
        "从 sysfs 读取 InfiniBand、RoCE、EFA 设备、端口、GID 和错误计数。",
        "rdma.devices rdma.device_names rdma.uverbs rdma.efa rdma.peermem_loaded rdma.dmabuf_possible "
        "rdma.ports_active rdma.ports_down rdma.port_states rdma.link_layer rdma.gids rdma.roce_v2_gid "
        "rdma.roce_v2_gid_index rdma.link_downed rdma.link_error_recovery rdma.symbol_errors "
        "rdma.excessive_buffer_overruns rdma.retry_timeouts rdma.sequence_errors rdma.out_of_sequence "
        "rdma.rnr_retries",
        5.0,
    ),
    _probe(
        "network",
        "Reads the interfaces, resolves this host's name and MASTER_ADDR, and tries the master port if it is local.",
        "读取网络接口，解析本机名与 MASTER_ADDR；若主节点是本机，则尝试绑定其端口。",
        "net.interfaces net.default_interface net.gateway net.routes net.mtus net.speed net.master_interface "
        "net.nccl_would_take net.nccl_candidates net.gloo_would_take "
        "net.ifname_matches net.gloo_ifname_matches net.mtu net.hostname net.hostname_resolves net.hostname_address "
        "net.hostname_is_loopback net.hostname_is_local net.master_addr net.master_resolves net.master_address "
        "net.master_is_local net.master_port net.master_port_in_use",
        8.0,
    ),
    _probe(
        "shm",
        "Reads the size of /dev/shm, what NCCL left there, and the IPC namespace.",
        "读取 /dev/shm 的大小、NCCL 残留文件和 IPC 命名空间。",
        "shm.total shm.free shm.nccl_leftovers shm.torch_leftovers ipc.private_namespace ipc.remove_ipc",
        5.0,
    ),
    _probe(
        "limits",
        "Reads this process's limits, the host's threads, and processes stuck in the kernel.",
        "读取本进程的资源限制、主机线程数和卡在内核中的进程。",
        "limit.memlock limit.memlock_hard limit.nofile limit.nofile_hard limit.nproc limit.nproc_hard limit.stack "
        "limit.stack_hard limit.fsize limit.fsize_hard limit.core limit.core_hard limit.threads_max limit.pids_max "
        "proc.threads proc.pids_used proc.uninterruptible proc.uninterruptible_list",
        5.0,
    ),
    _probe(
        "disk",
        "Reads free space and inodes of the working, temporary and Hugging Face folders.",
        "读取工作目录、临时目录和 Hugging Face 缓存目录的剩余空间与 inode。",
        "disk.free disk.fullest disk.inodes_free disk.read_only disk.cwd_free disk.cwd_inodes_free disk.cwd_type "
        "disk.tmp_free disk.tmp_inodes_free disk.tmp_type disk.hf_free disk.hf_inodes_free disk.hf_type "
        "disk.quota_free disk.quota_inodes_free disk.quota_filesystem",
        5.0,
    ),
    _probe(
        "host-memory",
        "Reads the host's memory, the control group's limit, and the kernel's OOM kills.",
        "读取主机内存、cgroup 限制和内核 OOM 记录。",
        "mem.total mem.available mem.swap_free cgroup.limited cgroup.limit cgroup.usage cgroup.oom_kills "
        "kernel.oom_kills kernel.log_readable kernel.last_oom_process kernel.last_oom_pid kernel.last_oom_age",
        8.0,
    ),
    _probe(
        "container",
        "Reads the operating system, the kind of container and its rights.",
        "读取操作系统、容器类型及其权限。",
        "cpu.count cpu.usable cpu.quota cpu.model os.system os.kernel os.arch os.machine_maker container.kind "
        "container.wsl container.vm container.privileged container.seccomp container.cap_ipc_lock "
        "container.cap_sys_admin container.cap_sys_nice container.cap_sys_ptrace",
        5.0,
    ),
    _probe(
        "libraries",
        "Looks for NCCL, CUDA and RDMA libraries, compilers, and Python packages that must fit torch.",
        "查找 NCCL、CUDA、RDMA 库，编译器，以及必须与 torch 匹配的 Python 包。",
        "lib.nccl_paths lib.nccl_copies lib.cudart_paths lib.cudart_copies lib.cudnn_paths lib.cudnn_copies "
        "lib.libfabric lib.libcuda lib.nvml lib.ibverbs "
        "lib.gdrcopy lib.nccl_net_plugin lib.ld_library_path_surprise lib.ld_library_path_hits nvcc.found nvcc.path "
        "nvcc.version nvcc.major gcc.found gcc.version ninja.found package.* package.torch_mismatch "
        "package.torch_mismatches",
        8.0,
    ),
    _probe(
        "scheduler",
        "Reads the Slurm, Kubernetes, PBS or LSF variables; inside a Slurm job asks squeue and scontrol.",
        "读取 Slurm、Kubernetes、PBS、LSF 变量；在 Slurm 作业内询问 squeue 和 scontrol。",
        "scheduler.kind slurm.job_id slurm.job_state slurm.nodes slurm.partition slurm.cpus slurm.gpus slurm.job_gpus "
        "slurm.tasks slurm.memory slurm.memory_per_cpu slurm.time_limit slurm.time_left slurm.node_state "
        "slurm.node_reason k8s.namespace k8s.pod k8s.node",
        8.0,
    ),
    _probe(
        "clock",
        "Asks the kernel whether its clock is synchronised, and which service keeps it.",
        "询问内核时钟是否已同步，以及由哪个服务校时。",
        "clock.synchronised clock.max_error clock.time clock.utc_offset clock.service",
        2.0,
    ),
    _probe(
        "env",
        "Reads NCCL_*, TORCH_*, CUDA_* and similar variables from an allow-list; never a secret.",
        "按白名单读取 NCCL_*、TORCH_*、CUDA_* 等变量；绝不读取密钥。",
        "env.* nccl.conf_files",
        2.0,
    ),
    _probe(
        "gloo-pair",
        "Starts two processes with the job's Python on this host that join over gloo and add two numbers.",
        "用作业的 Python 在本机启动两个进程，通过 gloo 建组并做一次求和。",
        "gloo.ok gloo.seconds gloo.error",
        40.0,
        active=True,
    ),
    _probe(
        "gloo-hosts",
        "On every host of --hosts: listens on a TCP port, connects to every other host, then adds up a tensor over "
        "gloo with the job's Python; ends within --seconds (60).",
        "在 --hosts 的每台主机上：监听一个 TCP 端口，连接其他各主机，再用作业的 Python 通过 gloo 做一次求和；"
        "在 --seconds（60）秒内结束。",
        "gloo.hosts gloo.host gloo.rank gloo.reached gloo.unreached gloo.unreached_count gloo.not_heard gloo.hosts_ok "
        "gloo.hosts_step gloo.hosts_seconds gloo.hosts_error gloo.address gloo.interface gloo.loopback",
        60.0,
        active=True,
        needs="joins given hosts: logdoc probe --active gloo-hosts --hosts A,B",
    ),
    _probe(
        "tcp-reach",
        "Opens one TCP connection to the given host and port and closes it at once.",
        "向指定主机和端口建立一次 TCP 连接并立即关闭。",
        "tcp.ok tcp.seconds tcp.error tcp.target tcp.address",
        6.0,
        active=True,
    ),
    _probe(
        "nccl-allreduce",
        "Runs a small NCCL all-reduce on 1 to N GPUs of this host, as configured and without P2P, SHM and IB; takes "
        "some hundred MiB on each GPU while it runs.",
        "在本机 1 到 N 块 GPU 上运行小型 NCCL all-reduce：当前配置，以及分别关闭 P2P、SHM、IB；"
        "期间每块 GPU 占用数百 MiB 显存。",
        "nccl.allreduce_ok nccl.allreduce_error nccl.allreduce_seconds nccl.allreduce_gpus nccl.gpus_ok "
        "nccl.gpus_failed nccl.without_p2p_ok nccl.without_shm_ok nccl.without_ib_ok nccl.p2p_broken "
        "nccl.shm_broken nccl.ib_broken",
        240.0,
        active=True,
    ),
    _probe(
        "p2p-copy",
        "Copies 16 MiB between every pair of GPUs of this host and compares the data.",
        "在本机每对 GPU 之间拷贝 16 MiB 并比对数据。",
        "p2p.copy_ok p2p.bad_pairs p2p.pairs p2p.peer_pairs p2p.error",
        90.0,
        active=True,
    ),
    _probe(
        "gpu-memory-peak",
        "Asks for the GPUs' used memory twice a second while a command runs and keeps the highest.",
        "在命令运行期间每秒两次查询显存占用并保留峰值。",
        "gpu.peak_used gpu.peak_total gpu.peak_fraction gpu.peak_card gpu.peak_samples gpu.*.peak_used",
        0.0,
        active=True,
        needs="watches a command: logdoc run --sample-memory -- COMMAND",
    ),
)


def spec(id: str) -> ProbeSpec | None:
    """The probe of that id, if there is one."""
    return next((entry for entry in PROBES if entry.id == id), None)


def passive_ids() -> tuple[str, ...]:
    """The probes that only read: what the collector runs."""
    return tuple(entry.id for entry in PROBES if not entry.active)
