/* A libnvidia-ml.so.1 of two H100s, compiled by test_probes_nvml.py: what the real binding (nvidia-ml-py) reads from it
 * goes through the driver library's own structures. STUB_NVML: nvmlInit's error; STUB_LOST: the second card is gone. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
typedef unsigned u32;
typedef unsigned long long u64;
typedef struct { char legacy_bus_id[16]; u32 domain, bus, device, pci_device_id, pci_subsystem_id; char bus_id[32]; } pci_t;
typedef struct { u64 total, free, used; } memory_t;
typedef struct { u32 pid; u64 used; u32 gpu_instance, compute_instance; } process_t;
typedef struct { unsigned char cluster[16]; int status; u32 clique; unsigned char state; } fabric_t;
typedef void *card;

static long number(card c) { return (long)c - 1; }
static int second(card c) { return number(c) == 1; }

int nvmlInit_v2(void) { const char *code = getenv("STUB_NVML"); return code ? atoi(code) : 0; }
int nvmlInitWithFlags(u32 flags) { (void)flags; return nvmlInit_v2(); }
int nvmlShutdown(void) { return 0; }
const char *nvmlErrorString(int code) {
  switch (code) {
    case 9: return "Driver Not Loaded";
    case 15: return "GPU is lost";
    case 18: return "Driver/library version mismatch";
    default: return "Unknown Error";
  }
}
int nvmlSystemGetDriverVersion(char *text, u32 size) { snprintf(text, size, "580.95.05"); return 0; }
int nvmlSystemGetCudaDriverVersion(int *version) { *version = 13000; return 0; }
int nvmlSystemGetCudaDriverVersion_v2(int *version) { *version = 13000; return 0; }
int nvmlDeviceGetCount_v2(u32 *count) { *count = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(u32 index, card *c) {
  if (index == 1 && getenv("STUB_LOST")) return 15;
  *c = (card)(long)(index + 1);
  return 0;
}
int nvmlDeviceGetIndex(card c, u32 *index) { *index = (u32)number(c); return 0; }
int nvmlDeviceGetName(card c, char *text, u32 size) { (void)c; snprintf(text, size, "NVIDIA H100 80GB HBM3"); return 0; }
int nvmlDeviceGetUUID(card c, char *text, u32 size) { snprintf(text, size, "GPU-%08ld-0000-0000-0000-000000000000", number(c)); return 0; }
int nvmlDeviceGetPciInfo_v3(card c, pci_t *pci) {
  memset(pci, 0, sizeof *pci);
  snprintf(pci->bus_id, sizeof pci->bus_id, "00000000:%02lX:00.0", 0x18 + number(c));
  return 0;
}
int nvmlDeviceGetComputeMode(card c, int *mode) { *mode = second(c) ? 3 : 0; return 0; }
int nvmlDeviceGetPersistenceMode(card c, int *mode) { (void)c; *mode = 1; return 0; }
int nvmlDeviceGetMigMode(card c, u32 *now, u32 *pending) { (void)c; *now = *pending = 0; return 0; }
int nvmlDeviceGetCudaComputeCapability(card c, int *major, int *minor) { (void)c; *major = 9; *minor = 0; return 0; }
int nvmlDeviceGetMemoryInfo(card c, memory_t *memory) {
  memory->total = 80ull << 30;
  memory->used = (u64)(1 + number(c)) << 30;
  memory->free = memory->total - memory->used;
  return 0;
}
int nvmlDeviceGetComputeRunningProcesses_v3(card c, u32 *count, process_t *found) {
  if (!second(c)) { *count = 0; return 0; }
  if (*count < 1) { *count = 1; return 7; } /* the buffer is too small */
  *count = 1;
  found[0].pid = 1;
  found[0].used = 3ull << 29;
  return 0;
}
int nvmlDeviceGetTotalEccErrors(card c, int kind, int counter, u64 *errors) { (void)counter; *errors = kind == 1 && second(c) ? 4 : 0; return 0; }
int nvmlDeviceGetRemappedRows(card c, u32 *correctable, u32 *uncorrectable, u32 *pending, u32 *failure) {
  *correctable = 1; *uncorrectable = 2; *pending = (u32)second(c); *failure = 0;
  return 0;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(card c, u64 *reasons) { *reasons = second(c) ? 0x40 : 0; return 0; }
int nvmlDeviceGetCurrPcieLinkGeneration(card c, u32 *value) { *value = second(c) ? 3 : 5; return 0; }
int nvmlDeviceGetMaxPcieLinkGeneration(card c, u32 *value) { (void)c; *value = 5; return 0; }
int nvmlDeviceGetCurrPcieLinkWidth(card c, u32 *value) { *value = second(c) ? 8 : 16; return 0; }
int nvmlDeviceGetMaxPcieLinkWidth(card c, u32 *value) { (void)c; *value = 16; return 0; }
int nvmlDeviceGetGpuFabricInfo(card c, fabric_t *fabric) { (void)c; memset(fabric, 0, sizeof *fabric); fabric->state = 3; return 0; }
