/* Calls kernels from Python, without Numba.

   A kernel is a function `int32_t run(result, error, words)` in a library of its module. `words` has its arguments one behind the
   other: an integer is one word; an array is its address and the length of each dimension. `result` receives integers and arrays
   (see runtime.h). The status is 0, or -2 where None is returned; another one is an error, and `error` may say which.

   `define` makes a Python function of a kernel's name and kinds. The kernel gets its code by `bind`; a call before that asks the
   function `resolve` for it. Arguments are checked against the kinds, so a kernel never runs on memory that is not as declared.

   `addresses` makes what kernels take as a list of rows: every step of a dataflow makes some.

   `Rows` is what a kernel made of some rows: a head, which says how many there are and where their columns lie, and the memory of the
   columns. `returning` makes of a kernel the same one that returns such objects. Python sees arrays only if it asks for them. */

#include "rows.h"
#include "traces.h"

#include <numpy/arrayobject.h>

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ARGUMENTS = 32, MOST_WORDS = 3 * MOST_ARGUMENTS, MOST_RESULTS = 8, MOST_RESULT_WORDS = 9 * MOST_RESULTS };

/* A kind is a letter: i an integer, v a one-dimensional array, m a two-dimensional one. Of results also r, rows, which are two arrays,
   the memory of their columns and their head; and h, rows whose columns lie in memory that others keep, which are a head. */
static int result_words(char kind) {
    const int vector = ARRAY_SHAPE + 2;
    return kind == 'i' ? 1 : kind == 'm' ? ARRAY_SHAPE + 4 : kind == 'r' ? 2 * vector : vector;
}

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
    PyObject *original; /* the kernel that this one differs from by what it makes of results */
    PyObject *rows;     /* the class of the rows that it returns */
    int arguments, results, tuple;
    char argument_kinds[MOST_ARGUMENTS + 1], result_kinds[MOST_RESULTS + 1];
    char *name;
    PyMethodDef method;
} Kernel;

PyTypeObject *rows_type;
static PyTypeObject *kernel_type;

static void release_block(Block *block) {
    if (block != NULL && atomic_fetch_sub(&block->references, 1) == 1) {
        if (block->end != NULL)
            block->end(block->data);
        free(block->owned);
        free(block);
    }
}

static void free_block(PyObject *owner) { release_block(PyCapsule_GetPointer(owner, NULL)); }

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

static void set_head(Rows *rows, int64_t *words, int64_t length) {
    rows->words = words;
    rows->length = length;
    rows->n = words[HEAD_ROWS];
    rows->at = words[HEAD_ADDRESS];
}

/* The rows of arrays that a kernel made. They take over the kernel's references to the memory. */
static PyObject *rows_from(const Kernel *kernel, const int64_t *columns, const int64_t *head) {
    Rows *rows = (Rows *)PyType_GenericAlloc((PyTypeObject *)kernel->rows, 0);
    if (rows == NULL || head[ARRAY_BLOCK] == 0 || (columns != NULL && columns[ARRAY_BLOCK] == 0)) {
        release_block((Block *)head[ARRAY_BLOCK]);
        if (columns != NULL)
            release_block((Block *)columns[ARRAY_BLOCK]);
        if (rows != NULL)
            PyErr_SetString(PyExc_SystemError, "a kernel returned rows that it did not make");
        Py_XDECREF((PyObject *)rows);
        return NULL;
    }
    rows->head_block = (Block *)head[ARRAY_BLOCK];
    rows->block = columns == NULL ? NULL : (Block *)columns[ARRAY_BLOCK];
    set_head(rows, (int64_t *)head[ARRAY_DATA], head[ARRAY_SHAPE]);
    return (PyObject *)rows;
}

static PyObject *value_from(const Kernel *kernel, const int64_t *result, char kind) {
    switch (kind) {
    case 'i':
        return PyLong_FromLongLong(*result);
    case 'r':
        return rows_from(kernel, result, result + result_words('v'));
    case 'h':
        return rows_from(kernel, NULL, result);
    default:
        return array_from(result, kind == 'v' ? 1 : 2);
    }
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
        Kernel *original = (Kernel *)kernel->original;
        if (original == NULL || original->run == NULL) {
            PyObject *done = PyObject_CallFunction(kernel->resolve, "s", kernel->name);
            if (done == NULL)
                return NULL;
            Py_DECREF(done);
        }
        if (original != NULL)
            kernel->run = original->run;
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
        return value_from(kernel, result, kernel->result_kinds[0]);
    }
    PyObject *all = PyTuple_New(kernel->results);
    const int64_t *at = result;
    for (int i = 0; i < kernel->results; i++) { /* all of them, also after a failure: each array takes over its memory */
        PyObject *value = value_from(kernel, at, kernel->result_kinds[i]);
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

static PyObject *kernel_function(const char *name, const char *arguments, const char *results, int tuple, PyObject *resolve,
                                 PyObject *original, PyObject *rows) {
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
    kernel->original = Py_XNewRef(original);
    kernel->rows = Py_XNewRef(rows);
    kernel->name = strdup(name);
    kernel->method = (PyMethodDef){kernel->name, (PyCFunction)(void (*)(void))call, METH_FASTCALL, NULL};
    PyObject *function = PyCFunction_NewEx(&kernel->method, (PyObject *)kernel, NULL);
    Py_DECREF(kernel);
    return function;
}

/* The kernel of a function that `define` made. */
static Kernel *kernel_of(PyObject *function) {
    PyObject *self = PyCFunction_Check(function) ? PyCFunction_GetSelf(function) : NULL;
    if (self == NULL || Py_TYPE(self) != kernel_type) {
        PyErr_SetString(PyExc_TypeError, "this is not a function that `define` made");
        return NULL;
    }
    return (Kernel *)self;
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
    return kernel_function(name, arguments, results, tuple, resolve, NULL, NULL);
}

PyDoc_STRVAR(returning_doc, "returning(function, results, rows): the same kernel, with results of other kinds. `rows` is a class of `Rows`.");
static PyObject *returning(PyObject *module, PyObject *given) {
    PyObject *function, *rows;
    const char *results;
    if (!PyArg_ParseTuple(given, "OsO", &function, &results, &rows))
        return NULL;
    Kernel *kernel = kernel_of(function);
    if (kernel == NULL)
        return NULL;
    if (!PyType_Check(rows) || !PyType_IsSubtype((PyTypeObject *)rows, rows_type)) {
        PyErr_SetString(PyExc_TypeError, "rows are of a class that is derived from Rows");
        return NULL;
    }
    char arrays[2 * MOST_RESULTS + 1] = "";
    if (strlen(results) <= MOST_RESULTS)
        for (const char *kind = results; *kind; kind++)
            strcat(arrays, *kind == 'r' ? "vv" : *kind == 'h' ? "v" : *kind == 'v' ? "v" : *kind == 'i' ? "i" : "m");
    if (strcmp(arrays, kernel->result_kinds) != 0) {
        PyErr_Format(PyExc_ValueError, "kernel %s returns %s, which is not %s", kernel->name, kernel->result_kinds, results);
        return NULL;
    }
    return kernel_function(kernel->name, kernel->argument_kinds, results, strlen(results) > 1, kernel->resolve, (PyObject *)kernel,
                           rows);
}

static void free_kernel(PyObject *self) {
    Kernel *kernel = (Kernel *)self;
    PyTypeObject *type = Py_TYPE(self);
    Py_DECREF(kernel->resolve);
    Py_XDECREF(kernel->original);
    Py_XDECREF(kernel->rows);
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
    Kernel *kernel = kernel_of(function);
    if (kernel == NULL)
        return NULL;
    Run run = (Run)dlsym(library, symbol);
    if (run == NULL) {
        PyErr_SetString(PyExc_OSError, dlerror());
        return NULL;
    }
    kernel->run = run;
    Py_RETURN_NONE;
}

/* ---- Rows */

static int begin_rows(PyObject *self, PyObject *arguments, PyObject *names) {
    Rows *rows = (Rows *)self;
    PyObject *head, *memory;
    if (names != NULL && PyDict_Size(names) > 0) {
        PyErr_SetString(PyExc_TypeError, "rows are made of a head and a memory, without names");
        return -1;
    }
    if (!PyArg_ParseTuple(arguments, "OO", &head, &memory))
        return -1;
    PyArrayObject *array = (PyArrayObject *)head;
    if (!PyArray_Check(head) || PyArray_TYPE(array) != NPY_INT64 || PyArray_NDIM(array) != 1
        || !PyArray_CHKFLAGS(array, NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED) || PyArray_DIMS(array)[0] < HEAD_COLUMNS) {
        PyErr_SetString(PyExc_TypeError, "a head is a contiguous array of at least three int64");
        return -1;
    }
    if (rows->head != NULL || rows->head_block != NULL || rows->memory != NULL) {
        PyErr_SetString(PyExc_TypeError, "rows do not begin twice");
        return -1;
    }
    rows->head = Py_NewRef(head);
    rows->memory = Py_NewRef(memory);
    set_head(rows, PyArray_DATA(array), PyArray_DIMS(array)[0]);
    return 0;
}

void clear_rows(Rows *rows) {
    Py_XDECREF(rows->head);
    Py_XDECREF(rows->memory);
    release_block(rows->head_block);
    release_block(rows->block);
}

static void free_rows(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    clear_rows((Rows *)self);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

void share_rows(Rows *rows, Rows *others) {
    rows->memory = Py_NewRef((PyObject *)others);
    set_head(rows, others->words, others->length);
}

PyDoc_STRVAR(share_doc, "share(rows): be the same rows as others, which stay in memory as long as these.");
static PyObject *share(PyObject *self, PyObject *others) {
    Rows *rows = (Rows *)self, *other = (Rows *)others;
    if (!PyObject_TypeCheck(others, rows_type) || other->words == NULL || rows->words != NULL) {
        PyErr_SetString(PyExc_TypeError, "only new rows can be the same as others");
        return NULL;
    }
    share_rows(rows, other);
    Py_RETURN_NONE;
}

static PyObject *get_head(PyObject *self, void *unused) {
    Rows *rows = (Rows *)self;
    if (rows->head == NULL && rows->head_block != NULL) {
        const int64_t made[] = {(int64_t)rows->head_block, 0, 0, 0, (int64_t)rows->words, rows->length};
        atomic_fetch_add(&rows->head_block->references, 1);
        rows->head = array_from(made, 1);
    } else if (rows->head == NULL && rows->memory != NULL) {
        return get_head(rows->memory, NULL); /* shared */
    } else if (rows->head == NULL) {
        PyErr_SetString(PyExc_AttributeError, "these rows have not begun");
    }
    return Py_XNewRef(rows->head);
}

/* What keeps the columns alive: the rows themselves, if a kernel made some of them. */
static PyObject *get_memory(PyObject *self, void *unused) {
    Rows *rows = (Rows *)self;
    if (rows->block != NULL)
        return Py_NewRef(self);
    if (rows->memory != NULL && rows->head == NULL && rows->head_block == NULL)
        return get_memory(rows->memory, NULL); /* shared */
    return Py_NewRef(rows->memory != NULL ? rows->memory : Py_None);
}

static int set_memory(PyObject *self, PyObject *memory, void *unused) {
    Rows *rows = (Rows *)self;
    if (memory == NULL || rows->memory != NULL || rows->head_block == NULL) {
        PyErr_SetString(PyExc_TypeError, "only rows that a kernel made can be given a memory, once");
        return -1;
    }
    rows->memory = Py_NewRef(memory);
    return 0;
}

static PyObject *get_n(PyObject *self, void *unused) { return PyLong_FromLongLong(((Rows *)self)->n); }
static PyObject *get_at(PyObject *self, void *unused) { return PyLong_FromLongLong(((Rows *)self)->at); }

static PyObject *get_width(PyObject *self, void *unused) {
    Rows *rows = (Rows *)self;
    return PyLong_FromLongLong(rows->words == NULL ? 0 : rows->words[HEAD_WIDTH]);
}

/* Whether all rows have one word in a column, as far as is to be seen: it is stored once, or the rows are very few. */
static int is_same_word(const int64_t *column, int64_t rows, int64_t *word) {
    *word = column[COLUMN_CONSTANT];
    if (column[COLUMN_STEP] == 0)
        return 1;
    if (column[COLUMN_STEP] != sizeof(int64_t) || rows < 1 || rows > 4)
        return 0;
    const int64_t *words = (const int64_t *)column[0];
    *word = words[0];
    for (int64_t i = 1; i < rows; i++)
        if (words[i] != *word)
            return 0;
    return 1;
}

PyObject *constants_of(Rows *rows, Py_ssize_t first, Py_ssize_t count) {
    if (first < 0 || count < 0 || HEAD_COLUMNS + PER_COLUMN * (first + count) > rows->length) {
        PyErr_SetString(PyExc_IndexError, "there are not so many columns");
        return NULL;
    }
    const int64_t *column = rows->words + HEAD_COLUMNS + PER_COLUMN * first;
    int64_t found;
    for (Py_ssize_t i = 0; i < count; i++)
        if (!is_same_word(column + PER_COLUMN * i, rows->n, &found))
            Py_RETURN_NONE;
    PyObject *words = PyTuple_New(count);
    for (Py_ssize_t i = 0; words != NULL && i < count; i++) {
        is_same_word(column + PER_COLUMN * i, rows->n, &found);
        PyObject *word = PyLong_FromLongLong(found);
        if (word == NULL)
            Py_CLEAR(words);
        else
            PyTuple_SetItem(words, i, word);
    }
    return words;
}

PyDoc_STRVAR(constants_doc, "constants(first, count): the words that all rows have in some columns; None if they differ in one. Of more than a "
                            "handful of rows only columns that are stored once are looked at.");
static PyObject *constants(PyObject *self, PyObject *given) {
    Py_ssize_t first, count;
    return PyArg_ParseTuple(given, "nn", &first, &count) ? constants_of((Rows *)self, first, count) : NULL;
}

static PyGetSetDef rows_attributes[] = {
    {"head", get_head, NULL, "The head, as an array.", NULL},
    {"memory", get_memory, set_memory, "What keeps the columns in memory.", NULL},
    {"n", get_n, NULL, "The number of rows.", NULL},
    {"at", get_at, NULL, "The address of the head.", NULL},
    {"width", get_width, NULL, "The number of columns.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef rows_methods[] = {
    {"share", share, METH_O, share_doc},
    {"constants", constants, METH_VARARGS, constants_doc},
    {NULL, NULL, 0, NULL},
};

static void free_table(PyObject *owner) {
    PyObject *rows = PyCapsule_GetContext(owner);
    PyMem_Free(PyCapsule_GetPointer(owner, NULL));
    Py_XDECREF(rows);
}

PyObject *addresses_of(PyObject *given) {
    static PyObject *at;
    if (at == NULL && (at = PyUnicode_InternFromString("at")) == NULL)
        return NULL;
    PyObject *rows = PySequence_Tuple(given);
    if (rows == NULL)
        return NULL;
    npy_intp number = PyTuple_Size(rows);
    int64_t *table = PyMem_Malloc((number ? number : 1) * sizeof(int64_t));
    PyObject *owner = table ? PyCapsule_New(table, NULL, free_table) : PyErr_NoMemory();
    if (owner == NULL) {
        PyMem_Free(table);
        Py_DECREF(rows);
        return NULL;
    }
    PyCapsule_SetContext(owner, rows);
    for (npy_intp i = 0; i < number; i++) {
        PyObject *row = PyTuple_GetItem(rows, i);
        if (PyObject_TypeCheck(row, rows_type)) {
            table[i] = ((Rows *)row)->at;
            continue;
        }
        PyObject *value = PyObject_GetAttr(row, at);
        table[i] = value ? PyLong_AsLongLong(value) : -1;
        Py_XDECREF(value);
        if (table[i] == -1 && PyErr_Occurred()) {
            Py_DECREF(owner);
            return NULL;
        }
    }
    PyObject *array = PyArray_SimpleNewFromData(1, &number, NPY_INT64, table);
    if (array == NULL) {
        Py_DECREF(owner);
        return NULL;
    }
    PyArray_CLEARFLAGS((PyArrayObject *)array, NPY_ARRAY_WRITEABLE);
    if (PyArray_SetBaseObject((PyArrayObject *)array, owner) < 0) {
        Py_DECREF(array);
        return NULL;
    }
    return array;
}

PyObject *new_words(Py_ssize_t number, int64_t **words) {
    npy_intp length = number;
    PyObject *array = PyArray_SimpleNew(1, &length, NPY_INT64);
    if (array != NULL)
        *words = PyArray_DATA((PyArrayObject *)array);
    return array;
}

int64_t first_word(PyObject *array) { return *(int64_t *)PyArray_DATA((PyArrayObject *)array); }

PyDoc_STRVAR(addresses_doc, "addresses(rows): an array of the attribute `at` of each of some objects, which it keeps alive.");
static PyObject *addresses(PyObject *module, PyObject *rows) { return addresses_of(rows); }

PyDoc_STRVAR(processor_doc, "processor(): the best of the processors that kernels are compiled for that this one is; '' if none.");

static PyMethodDef functions[] = {
    {"define", define, METH_VARARGS, define_doc},
    {"load", load, METH_O, load_doc},
    {"bind", bind, METH_VARARGS, bind_doc},
    {"returning", returning, METH_VARARGS, returning_doc},
    {"addresses", addresses, METH_O, addresses_doc},
    {"processor", processor, METH_NOARGS, processor_doc},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "call", "Calls kernels from Python, without Numba.", -1, functions,
                                 NULL, NULL, NULL, NULL};

static PyType_Slot kernel_slots[] = {{Py_tp_dealloc, free_kernel}, {0, NULL}};
static PyType_Spec kernel_spec = {"tektite.kernels.call.Kernel", sizeof(Kernel), 0,
                                  Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, kernel_slots};

static PyType_Slot rows_slots[] = {{Py_tp_dealloc, free_rows},        {Py_tp_init, begin_rows},     {Py_tp_new, PyType_GenericNew},
                                   {Py_tp_getset, rows_attributes}, {Py_tp_methods, rows_methods}, {0, NULL}};
static PyType_Spec rows_spec = {"tektite.kernels.call.Rows", sizeof(Rows), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, rows_slots};

PyMODINIT_FUNC PyInit_call(void) {
    if (PyArray_ImportNumPyAPI() < 0)
        return NULL;
    kernel_type = (PyTypeObject *)PyType_FromSpec(&kernel_spec);
    rows_type = (PyTypeObject *)PyType_FromSpec(&rows_spec);
    PyObject *module = kernel_type && rows_type ? PyModule_Create(&definition) : NULL;
    if (module != NULL && (PyModule_AddObjectRef(module, "Rows", (PyObject *)rows_type) < 0 || add_spine_types(module) < 0 || add_trace_types(module) < 0
                           || add_agenda(module) < 0 || add_steps(module) < 0 || add_writes(module) < 0 || add_nodes(module) < 0
                           || add_signals(module) < 0))
        Py_CLEAR(module);
    return module;
}
