/* C++'s new and delete as linkers know them, in all forms that programs call. */
#ifndef SONDE_HEAP_OPERATORS_H
#define SONDE_HEAP_OPERATORS_H

#define HEAP_OPERATORS(X)                                                                          \
    X(_Znwm)                                                                                       \
    X(_Znam)                                                                                       \
    X(_ZnwmRKSt9nothrow_t)                                                                         \
    X(_ZnamRKSt9nothrow_t)                                                                         \
    X(_ZnwmSt11align_val_t)                                                                        \
    X(_ZnamSt11align_val_t)                                                                        \
    X(_ZnwmSt11align_val_tRKSt9nothrow_t)                                                          \
    X(_ZnamSt11align_val_tRKSt9nothrow_t)                                                          \
    X(_ZdlPv)                                                                                      \
    X(_ZdaPv)                                                                                      \
    X(_ZdlPvm)                                                                                     \
    X(_ZdaPvm)                                                                                     \
    X(_ZdlPvRKSt9nothrow_t)                                                                        \
    X(_ZdaPvRKSt9nothrow_t)                                                                        \
    X(_ZdlPvSt11align_val_t)                                                                       \
    X(_ZdaPvSt11align_val_t)                                                                       \
    X(_ZdlPvmSt11align_val_t)                                                                      \
    X(_ZdaPvmSt11align_val_t)

#endif
