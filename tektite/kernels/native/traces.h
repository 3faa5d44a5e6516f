/* Records, and what traces.c offers to the other parts of the extension module. */

#ifndef TEKTITE_TRACES_H
#define TEKTITE_TRACES_H

#include "rows.h"

/* Rows up to which limited memory does not matter: a few kilobytes. Also those that small epochs have at most, because with more of
   them the calls that are saved do not count. */
#define FEW_ROWS 1024

/* ---- Records */

#define DECLARE(name) PyObject *name;
#define COUNT(name) +1

/* Frees, clears and visits the fields of a record of `Type`, which follow the head of the object. */
#define RECORD(Type, type, FIELDS)                                                                                               \
    typedef struct {                                                                                                             \
        PyObject_HEAD                                                                                                            \
        FIELDS(DECLARE)                                                                                                          \
    } Type;                                                                                                                      \
    static int visit_##type(PyObject *self, visitproc visit, void *arg) {                                                        \
        Py_VISIT(Py_TYPE(self));                                                                                                 \
        return visit_fields(self, 0 FIELDS(COUNT), visit, arg);                                                                  \
    }                                                                                                                            \
    static int clear_##type(PyObject *self) { return clear_fields(self, 0 FIELDS(COUNT)); }                                      \
    static void free_##type(PyObject *self) {                                                                                    \
        PyTypeObject *class = Py_TYPE(self);                                                                                     \
        PyObject_GC_UnTrack(self);                                                                                               \
        clear_##type(self);                                                                                                      \
        ((freefunc)PyType_GetSlot(class, Py_tp_free))(self);                                                                     \
        Py_DECREF(class);                                                                                                        \
    }

#define SLOTS(type)                                                                                                              \
    {Py_tp_dealloc, free_##type}, {Py_tp_traverse, visit_##type}, {Py_tp_clear, clear_##type}, {Py_tp_new, PyType_GenericNew}

static inline PyObject **fields_of(PyObject *self) { return (PyObject **)((char *)self + sizeof(PyObject)); }

static inline int visit_fields(PyObject *self, int count, visitproc visit, void *arg) {
    for (int i = 0; i < count; i++)
        Py_VISIT(fields_of(self)[i]);
    return 0;
}

static inline int clear_fields(PyObject *self, int count) {
    for (int i = 0; i < count; i++)
        Py_CLEAR(fields_of(self)[i]);
    return 0;
}

#define MEMBER(Type, name) {#name, T_OBJECT_EX, offsetof(Type, name), 0, NULL}

/* Replaces what a field refers to. The old value goes last: its end may call Python. */
static inline void set_field(PyObject **field, PyObject *value) {
    PyObject *before = *field;
    *field = Py_XNewRef(value);
    Py_XDECREF(before);
}

/* A type of this module, or NULL. */
static inline PyTypeObject *add_type(PyObject *module, const char *name, const char *full, size_t size, unsigned long flags,
                              PyType_Slot *slots, PyTypeObject *base) {
    PyType_Spec spec = {full, (int)size, 0, (unsigned)(Py_TPFLAGS_DEFAULT | flags), slots};
    PyObject *made = base == NULL ? PyType_FromSpec(&spec) : PyType_FromSpecWithBases(&spec, (PyObject *)base);
    if (made != NULL && PyModule_AddObjectRef(module, name, made) < 0)
        Py_CLEAR(made);
    return (PyTypeObject *)made;
}

/* ---- Attributes of objects that are no records, by interned names: NAMES lists those of a file */

#define DECLARE_NAME(name) static PyObject *n_##name;
#define INTERN(name)                                                                                                             \
    if ((n_##name = PyUnicode_InternFromString(#name)) == NULL)                                                                  \
        return -1;
#define GET(object, name) PyObject_GetAttr((PyObject *)(object), n_##name)
#define SET(object, name, value) PyObject_SetAttr((PyObject *)(object), n_##name, (PyObject *)(value))

/* Whether an attribute is true; -1 with an error. */
static inline int attribute_is_true(PyObject *object, PyObject *name) {
    PyObject *value = PyObject_GetAttr(object, name);
    const int found = value == NULL ? -1 : value == Py_None ? 0 : PyObject_IsTrue(value);
    Py_XDECREF(value);
    return found;
}

/* Whether an attribute is not None; -1 with an error. */
static inline int attribute_is_set(PyObject *object, PyObject *name) {
    PyObject *value = PyObject_GetAttr(object, name);
    const int found = value == NULL ? -1 : value != Py_None;
    Py_XDECREF(value);
    return found;
}

/* ---- */

/* `Trace.prepare`, `Mint.apply` and `Trace.settle` of a mint's shard. The chunks are a list. */
PRIVATE PyObject *prepared_mint(PyObject *trace, Py_ssize_t shard, PyObject *chunks, PyObject *upper);
PRIVATE int applied_mint(PyObject *mint);
PRIVATE int settled_mint(PyObject *mint);
PRIVATE int64_t rows_of_mint(PyObject *mint);

/* `Trace.mint`, and `Trace.version`: a new reference. */
PRIVATE int minted_rows(PyObject *trace, Py_ssize_t shard, PyObject *rows, PyObject *upper);
PRIVATE PyObject *version_of_trace(PyObject *trace, Py_ssize_t shard);
/* `Handle.take_before`. */
PRIVATE PyObject *taken_rows(PyObject *handle, Py_ssize_t shard, int64_t epoch);
/* `Handle.queued`; and the rows of a list of batches or chunks. */
PRIVATE int64_t rows_waiting(PyObject *handle);
PRIVATE int64_t rows_of(PyObject *batches);
/* The table of a version. Borrowed. */
PRIVATE PyObject *table_of(PyObject *version);

/* Adds what is in the other files to the module. */
PRIVATE int add_trace_types(PyObject *module);
PRIVATE int add_agenda(PyObject *module);
PRIVATE int add_steps(PyObject *module);

#endif
