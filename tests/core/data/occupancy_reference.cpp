// Reads launches from stdin, prints what NVIDIA's own calculator says: blocks per SM and the limiting factors.
// One launch a line: major minor threads_per_sm regs_per_sm smem_per_sm smem_optin smem_reserved
//                    block_threads regs static_smem dynamic_smem barriers carveout optin
#include <climits>
#include <cstdio>
#include "cuda_occupancy.h"

int main() {
    int major, minor, threads, regs_per_sm, block, regs, barriers, carveout, optin;
    size_t smem, smem_optin, reserved, fixed, dynamic;
    while (std::scanf("%d %d %d %d %zu %zu %zu %d %d %zu %zu %d %d %d", &major, &minor, &threads, &regs_per_sm, &smem,
                      &smem_optin, &reserved, &block, &regs, &fixed, &dynamic, &barriers, &carveout, &optin) == 14) {
        cudaOccDeviceProp device;
        device.computeMajor = major;
        device.computeMinor = minor;
        device.maxThreadsPerBlock = 1024;
        device.maxThreadsPerMultiprocessor = threads;
        device.regsPerBlock = 65536;
        device.regsPerMultiprocessor = regs_per_sm;
        device.warpSize = 32;
        device.sharedMemPerBlock = 49152;
        device.sharedMemPerMultiprocessor = smem;
        device.numSms = 1;
        device.sharedMemPerBlockOptin = smem_optin;
        device.reservedSharedMemPerBlock = reserved;
        cudaOccFuncAttributes function;
        function.maxThreadsPerBlock = INT_MAX;
        function.numRegs = regs;
        function.sharedSizeBytes = fixed;
        function.partitionedGCConfig = PARTITIONED_GC_OFF;
        function.shmemLimitConfig = optin ? FUNC_SHMEM_LIMIT_OPTIN : FUNC_SHMEM_LIMIT_DEFAULT;
        function.maxDynamicSharedSizeBytes = dynamic;
        function.numBlockBarriers = barriers;
        cudaOccDeviceState state;
        state.carveoutConfig = carveout;
        cudaOccResult result;
        if (cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &function, &state, block, dynamic) !=
            CUDA_OCC_SUCCESS) {
            std::puts("error");
            continue;
        }
        std::printf("%d %u\n", result.activeBlocksPerMultiprocessor, result.limitingFactors);
    }
}
