/* Best unit: a function is compiled for several vector units, and the loader picks the best that the machine
 * has. For loops that are most of a step. In a file that is compiled with -ffp-contract=fast
 * (trainer/build.mk) the result is rounded otherwise from machine to machine: nothing that ranks keep equal
 * by computing it each for itself, as the update, may be there. */
#pragma once

#if defined(__x86_64__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
#define ON_BEST_UNIT __attribute__((target_clones("avx512f", "avx2", "default")))
#define ON_FUSING_UNIT                                                                                       \
        __attribute__((target_clones("fma", "default"))) /* product and sum in one: vector8                  \
                                                          */
#else
#define ON_BEST_UNIT
#define ON_FUSING_UNIT
#endif

/* Where the unit has 32 registers of sixteen floats, a loop may keep more in them; asked for at run time. */
#if defined(__x86_64__)
#define ON_WIDE_UNIT  __attribute__((target("avx512f,avx512vl,fma")))
#define HAS_WIDE_UNIT (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl"))
#else
#define HAS_WIDE_UNIT false
#endif

/* Eight floats wherever they lie; the compiler cuts them up where the unit is narrower. */
typedef float vector8 __attribute__((vector_size(32), aligned(4), may_alias));

#define VECTOR8_OF(f)                                                                                        \
        (vector8)                                                                                            \
        {                                                                                                    \
                f, f, f, f, f, f, f, f                                                                       \
        }
