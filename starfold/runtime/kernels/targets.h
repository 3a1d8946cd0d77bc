// Which instruction sets kernels are built for: fewer than Highway knows, to build faster. On x86
// AVX-512, AVX2 and SSE4; what is older runs plain C++.
#pragma once

#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#endif
