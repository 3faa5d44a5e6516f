/* Which of the processors that kernels are compiled for this one is. */

#include "rows.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#if defined(__x86_64__)
/* Asks the processor itself: what compilers offer for that lies in libraries that not all of them link into shared code. */
static const char *x86_level(void) {
    enum { SSSE3 = 1 << 9, FMA = 1 << 12, SSE4_2 = 1 << 20, MOVBE = 1 << 22, POPCNT = 1 << 23, OSXSAVE = 1 << 27, F16C = 1 << 29 };
    enum { BMI1 = 1 << 3, AVX2 = 1 << 5, BMI2 = 1 << 8, LZCNT = 1 << 5, SAVES_AVX = 6 };
    const unsigned v2 = SSSE3 | SSE4_2 | POPCNT, v3 = FMA | MOVBE | F16C | OSXSAVE, v3_more = BMI1 | AVX2 | BMI2;
    unsigned eax, ebx, ecx, edx, basic;
    if (!__get_cpuid(1, &eax, &ebx, &basic, &edx) || (basic & v2) != v2)
        return "";
    if ((basic & v3) != v3 || !__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) || (ebx & v3_more) != v3_more
        || !__get_cpuid(0x80000001, &eax, &ebx, &ecx, &edx) || !(ecx & LZCNT))
        return "x86-64-v2";
    __asm__("xgetbv" : "=a"(eax), "=d"(edx) : "c"(0)); /* whether the system saves the registers of AVX */
    return (eax & SAVES_AVX) == SAVES_AVX ? "x86-64-v3" : "x86-64-v2";
}
#endif

PyObject *processor(PyObject *module, PyObject *nothing) {
#if defined(__x86_64__)
    return PyUnicode_FromString(x86_level());
#elif defined(__aarch64__)
    return PyUnicode_FromString("aarch64");
#else
    return PyUnicode_FromString("");
#endif
}
