/* Calls kernels from Python, without Numba.

   A kernel is a function `int32_t run(result, error, words)` in a library of its module. `words` has its arguments one behind the
   other: an integer is one word; an array is its address and the length of each dimension. `result` receives integers and arrays
   (see runtime.h). The status is 0, or -2 where None is returned; another one is an error, and `error` may say which.

   `define` makes a Python function of a kernel's name and kinds. The kernel gets its code by `bind`; a call before that asks the
   function `resolve` for it. Arguments are checked against the kinds, so a kernel never runs on memory that is not as declared. */

#define Py_LIMITED_API 0x030b0000
#define PY_SSIZE_T_CLEAN
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION

#include <Python.h>
#include <numpy/arrayobject.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "runtime.h"

enum { MOST_ARGUMENTS = 32, MOST_WORDS = 3 * MOST_ARGUMENTS, MOST_RESULTS = 8, MOST_RESULT_WORDS = 9 * MOST_RESULTS };

/* A kind is a letter: i an integer, v a one-dimensional array, m a two-dimensional one. */
static int result_words(char kind) { return kind == 'i' ? 1 : kind == 'v' ? ARRAY_SHAPE + 2 : ARRAY_SHAPE + 4; }

typedef struct {
    char *pickled; /* the class and the arguments of the exception, which Numba wrote when it compiled the kernel */
    int32_t length;
    char *digest;
    void *unwrap;
    int32_t dynamic;
} Failure;

typedef int32_t (*Run)(int64_t *result, Failure **error, const int64_t *words);

typedef struct {
    PyObject_HEAD
    Run run;
    PyObject *resolve;
    int arguments, results, tuple;
    char argument_kinds[MOST_ARGUMENTS + 1], result_kinds[MOST_RESULTS + 1];
    char *name;
    PyMethodDef method;
} Kernel;

static PyTypeObject *kernel_type;

static void free_block(PyObject *owner) {
    Block *block = PyCapsule_GetPointer(owner, NULL);
    if (atomic_fetch_sub(&block->references, 1) == 1) {
        if (block->end != NULL)
            block->end(block->data);
        free(block->owned);
        free(block);
    }
}

/* The NumPy array of an array that a kernel made. It takes over the kernel's reference to the memory. */
static PyObject *array_from(const int64_t *made, int dimensions) {
    Block *block = (Block *)made[ARRAY_BLOCK];
    if (block == NULL) {
        PyErr_SetString(PyExc_SystemError, "a kernel returned an array that it did not make");
        return NULL;
    }
    PyObject *owner = PyCapsule_New(block, NULL, free_block);
    if (owner == NULL)
        return NULL;
    PyObject *array =
        PyArray_SimpleNewFromData(dimensions, (npy_intp *)(made + ARRAY_SHAPE), NPY_INT64, (void *)made[ARRAY_DATA]);
    if (array == NULL) {
        Py_DECREF(owner);
        return NULL;
    }
    if (PyArray_SetBaseObject((PyArrayObject *)array, owner) < 0) {
        Py_DECREF(array);
        return NULL;
    }
    return array;
}

static PyObject *value_from(const int64_t *result, char kind) {
    return kind == 'i' ? PyLong_FromLongLong(*result) : array_from(result, kind == 'v' ? 1 : 2);
}

static PyObject *fail(const Kernel *kernel, int32_t status, const Failure *error) {
    if (status > 0 && error != NULL && error->pickled != NULL && error->unwrap == NULL) {
        PyObject *pickle = PyImport_ImportModule("pickle");
        PyObject *said = pickle ? PyObject_CallMethod(pickle, "loads", "y#", error->pickled, (Py_ssize_t)error->length) : NULL;
        Py_XDECREF(pickle);
        if (said == NULL)
            return NULL;
        PyObject *arguments = PyTuple_GetItem(said, 1);
        PyErr_SetObject(PyTuple_GetItem(said, 0), arguments == Py_None ? NULL : arguments);
        Py_DECREF(said);
    } else {
        PyErr_Format(PyExc_SystemError, "kernel %s failed with status %d", kernel->name, status);
    }
    return NULL;
}

static int words_of_array(const Kernel *kernel, PyObject *value, int number, int dimensions, int64_t *words) {
    PyArrayObject *array = (PyArrayObject *)value;
    const int flags = NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED | NPY_ARRAY_NOTSWAPPED;
    if (!PyArray_Check(value) || PyArray_TYPE(array) != NPY_INT64 || PyArray_NDIM(array) != dimensions
        || !PyArray_CHKFLAGS(array, flags & ~NPY_ARRAY_NOTSWAPPED) || !PyArray_ISNOTSWAPPED(array)) {
        PyErr_Format(PyExc_TypeError, "kernel %s takes a contiguous int64 array of %d dimension%s as argument %d, not %R",
                     kernel->name, dimensions, dimensions == 1 ? "" : "s", number + 1, (PyObject *)Py_TYPE(value));
        return 0;
    }
    words[0] = (int64_t)PyArray_DATA(array);
    for (int d = 0; d < dimensions; d++)
        words[1 + d] = PyArray_DIMS(array)[d];
    return 1 + dimensions;
}

static PyObject *call(PyObject *self, PyObject *const *arguments, Py_ssize_t given) {
    Kernel *kernel = (Kernel *)self;
    if (given != kernel->arguments) {
        PyErr_Format(PyExc_TypeError, "kernel %s takes %d arguments, not %zd", kernel->name, kernel->arguments, given);
        return NULL;
    }
    int64_t words[MOST_WORDS];
    int used = 0;
    for (int i = 0; i < kernel->arguments; i++) {
        const char kind = kernel->argument_kinds[i];
        if (kind == 'i') {
            const int64_t word = PyLong_AsLongLong(arguments[i]);
            if (word == -1 && PyErr_Occurred())
                return NULL;
            words[used++] = word;
        } else {
            const int more = words_of_array(kernel, arguments[i], i, kind == 'v' ? 1 : 2, words + used);
            if (more == 0)
                return NULL;
            used += more;
        }
    }
    if (kernel->run == NULL) {
        PyObject *done = PyObject_CallFunction(kernel->resolve, "s", kernel->name);
        if (done == NULL)
            return NULL;
        Py_DECREF(done);
        if (kernel->run == NULL) {
            PyErr_Format(PyExc_SystemError, "nothing was bound to kernel %s", kernel->name);
            return NULL;
        }
    }
    int64_t result[MOST_RESULT_WORDS];
    Failure *error = NULL;
    int32_t status;
    Py_BEGIN_ALLOW_THREADS
    status = kernel->run(result, &error, words);
    Py_END_ALLOW_THREADS
    if (status != 0 && status != -2)
        return fail(kernel, status, error);
    if (!kernel->tuple) {
        if (kernel->results == 0)
            Py_RETURN_NONE;
        return value_from(result, kernel->result_kinds[0]);
    }
    PyObject *all = PyTuple_New(kernel->results);
    const int64_t *at = result;
    for (int i = 0; i < kernel->results; i++) { /* all of them, also after a failure: each array takes over its memory */
        PyObject *value = value_from(at, kernel->result_kinds[i]);
        at += result_words(kernel->result_kinds[i]);
        if (all == NULL)
            Py_XDECREF(value);
        else if (value == NULL)
            Py_CLEAR(all);
        else
            PyTuple_SetItem(all, i, value);
    }
    return all;
}

PyDoc_STRVAR(define_doc, "define(name, arguments, results, tuple, resolve): the function that calls a kernel of these kinds.");
static PyObject *define(PyObject *module, PyObject *given) {
    const char *name, *arguments, *results;
    int tuple;
    PyObject *resolve;
    if (!PyArg_ParseTuple(given, "sssiO", &name, &arguments, &results, &tuple, &resolve))
        return NULL;
    if (strlen(arguments) > MOST_ARGUMENTS || strlen(results) > MOST_RESULTS) {
        PyErr_Format(PyExc_ValueError, "kernel %s has more than %d arguments or %d results", name, MOST_ARGUMENTS, MOST_RESULTS);
        return NULL;
    }
    Kernel *kernel = PyObject_New(Kernel, kernel_type);
    if (kernel == NULL)
        return NULL;
    kernel->run = NULL;
    kernel->arguments = (int)strlen(arguments);
    kernel->results = (int)strlen(results);
    kernel->tuple = tuple;
    strcpy(kernel->argument_kinds, arguments);
    strcpy(kernel->result_kinds, results);
    kernel->resolve = Py_NewRef(resolve);
    kernel->name = strdup(name);
    kernel->method = (PyMethodDef){kernel->name, (PyCFunction)(void (*)(void))call, METH_FASTCALL, NULL};
    PyObject *function = PyCFunction_NewEx(&kernel->method, (PyObject *)kernel, NULL);
    Py_DECREF(kernel);
    return function;
}

static void free_kernel(PyObject *self) {
    Kernel *kernel = (Kernel *)self;
    PyTypeObject *type = Py_TYPE(self);
    Py_DECREF(kernel->resolve);
    free(kernel->name);
    PyObject_Free(self);
    Py_DECREF(type);
}

PyDoc_STRVAR(load_doc, "load(path): the library of kernels at a path, for `bind`. It stays loaded.");
static PyObject *load(PyObject *module, PyObject *path) {
    PyObject *bytes;
    if (!PyUnicode_FSConverter(path, &bytes))
        return NULL;
    void *library = dlopen(PyBytes_AsString(bytes), RTLD_NOW | RTLD_LOCAL);
    Py_DECREF(bytes);
    if (library == NULL) {
        PyErr_SetString(PyExc_OSError, dlerror());
        return NULL;
    }
    return PyLong_FromVoidPtr(library);
}

PyDoc_STRVAR(bind_doc, "bind(function, library, symbol): give a defined kernel its code.");
static PyObject *bind(PyObject *module, PyObject *given) {
    PyObject *function, *place;
    const char *symbol;
    if (!PyArg_ParseTuple(given, "OOs", &function, &place, &symbol))
        return NULL;
    void *library = PyLong_AsVoidPtr(place);
    if (library == NULL)
        return NULL;
    PyObject *self = PyCFunction_Check(function) ? PyCFunction_GetSelf(function) : NULL;
    if (self == NULL || Py_TYPE(self) != kernel_type) {
        PyErr_SetString(PyExc_TypeError, "only a function that `define` made can be bound");
        return NULL;
    }
    Run run = (Run)dlsym(library, symbol);
    if (run == NULL) {
        PyErr_SetString(PyExc_OSError, dlerror());
        return NULL;
    }
    ((Kernel *)self)->run = run;
    Py_RETURN_NONE;
}

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

PyDoc_STRVAR(processor_doc, "processor(): the best of the processors that kernels are compiled for that this one is; '' if none.");
static PyObject *processor(PyObject *module, PyObject *nothing) {
#if defined(__x86_64__)
    return PyUnicode_FromString(x86_level());
#elif defined(__aarch64__)
    return PyUnicode_FromString("aarch64");
#else
    return PyUnicode_FromString("");
#endif
}

static PyMethodDef functions[] = {
    {"define", define, METH_VARARGS, define_doc},
    {"load", load, METH_O, load_doc},
    {"bind", bind, METH_VARARGS, bind_doc},
    {"processor", processor, METH_NOARGS, processor_doc},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "call", "Calls kernels from Python, without Numba.", -1, functions,
                                 NULL, NULL, NULL, NULL};

static PyType_Slot kernel_slots[] = {{Py_tp_dealloc, free_kernel}, {0, NULL}};
static PyType_Spec kernel_spec = {"tektite.kernels.call.Kernel", sizeof(Kernel), 0,
                                  Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, kernel_slots};

PyMODINIT_FUNC PyInit_call(void) {
    if (PyArray_ImportNumPyAPI() < 0)
        return NULL;
    kernel_type = (PyTypeObject *)PyType_FromSpec(&kernel_spec);
    return kernel_type ? PyModule_Create(&definition) : NULL;
}
