// Marks what nvcc compiles for the host and the device alike, and picks between the two.
#pragma once

#ifdef __CUDACC__
#define TANDEM_HOST_DEVICE __host__ __device__
#else
#define TANDEM_HOST_DEVICE
#endif

// Leaves no function of its own behind, so that each instruction set's file has its own code for it.
#define TANDEM_ALWAYS_INLINE TANDEM_HOST_DEVICE __attribute__((always_inline)) inline

#ifdef __CUDA_ARCH__
#define TANDEM_HOST_OR_DEVICE(host, device) (device)
#else
#define TANDEM_HOST_OR_DEVICE(host, device) (host)
#endif
