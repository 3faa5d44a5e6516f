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

/* A record of `Type`: an object whose fields follow its head. */
#define STRUCT(Type, FIELDS)                                                                                                     \
    typedef struct {                                                                                                             \
        PyObject_HEAD                                                                                                            \
        FIELDS(DECLARE)                                                                                                          \
    } Type;

/* Frees, clears and visits the fields of a record. */
#define RECORD(type, FIELDS)                                                                                                     \
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

/* ---- Traces and what they are made of */

#define TRACE_FIELDS(F)                                                                                                          \
    F(_asked) F(_uppers) F(data) F(diffs) F(effort) F(handles) F(holds) F(memory) F(minted) F(on_mint) F(routes) F(shards)       \
    F(spines) F(times) F(unguarded)
#define SPINE_FIELDS(F)                                                                                                          \
    F(_allowed) F(_at_once) F(_effort) F(_joined) F(_may_wait) F(_memory) F(_open) F(_open_table) F(_owed)                       \
    F(_reader) F(_stale) F(_units) F(fresh) F(known) F(merged) F(shape) F(upper)
#define HANDLE_FIELDS(F) F(guarded_by) F(hold) F(pins) F(queues) F(reads_versions) F(trace) F(wake)
#define VERSION_FIELDS(F) F(batches) F(table)
#define MINT_FIELDS(F) F(batches) F(routed) F(shard) F(trace) F(version)

STRUCT(Trace, TRACE_FIELDS)
STRUCT(Spine, SPINE_FIELDS)
STRUCT(Handle, HANDLE_FIELDS)
STRUCT(Version, VERSION_FIELDS)
STRUCT(Mint, MINT_FIELDS)

/* What `Journal` and `Sweep` of tektite/dataflow/journal.py inherit, and `Dataflow` of tektite/dataflow/flow.py. */
#define JOURNAL_FIELDS(F) F(ended_sweeps) F(listeners) F(sweeps) F(why) F(work)
#define SWEEP_FIELDS(F) F(began) F(first) F(name) F(rows) F(seconds) F(time) F(why)
STRUCT(Journal, JOURNAL_FIELDS)
STRUCT(Sweep, SWEEP_FIELDS)

#define FLOW_FIELDS(F)                                                                                                           \
    F(_purposes) F(awake) F(away) F(claim) F(constants) F(effort) F(error_holds) F(failure) F(first) F(former_errors)            \
    F(full_buffers) F(handles) F(high) F(holds) F(imports) F(is_kept_here) F(journal) F(limit) F(memory) F(name)                 \
    F(on_failed) F(on_swept) F(on_wake) F(outlets) F(part) F(purpose) F(reached) F(result_errors) F(results) F(root)             \
    F(rounds) F(running) F(shards) F(sources) F(sweep) F(swept) F(traces) F(unlocked) F(workers)
STRUCT(Flow, FLOW_FIELDS)

typedef struct {
    Rows rows;
    PyObject *lower, *upper, *_since;
} Batch;

/* A borrowed element of a list or tuple that a record has, or NULL with an error. */
static inline PyObject *element(PyObject *list, Py_ssize_t at) {
    if (list != NULL && PyList_Check(list))
        return PyList_GetItem(list, at);
    if (list != NULL && PyTuple_Check(list))
        return PyTuple_GetItem(list, at);
    PyErr_SetString(PyExc_SystemError, "a record has not begun");
    return NULL;
}

static inline int put_element(PyObject *list, Py_ssize_t at, PyObject *value) { return PyList_SetItem(list, at, Py_NewRef(value)); }

/* A tuple with another element in one place: a new reference. */
static inline PyObject *with_element(PyObject *tuple, Py_ssize_t at, PyObject *value) {
    const Py_ssize_t size = PyTuple_Size(tuple);
    PyObject *made = size < 0 ? NULL : PyTuple_New(size);
    for (Py_ssize_t i = 0; made != NULL && i < size; i++)
        PyTuple_SetItem(made, i, Py_NewRef(i == at ? value : PyTuple_GetItem(tuple, i)));
    return made;
}

static inline int add_to_field(PyObject **field, int64_t more) {
    const int64_t number = *field == NULL ? 0 : PyLong_AsLongLong(*field);
    if (number == -1 && PyErr_Occurred())
        return -1;
    PyObject *sum = PyLong_FromLongLong(number + more);
    if (sum == NULL)
        return -1;
    PyObject *before = *field;
    *field = sum;
    Py_XDECREF(before);
    return 0;
}

/* Appends the elements of a list or tuple to a list, all of them or, where there is no memory, none. */
static inline int extend(PyObject *list, PyObject *more) {
    const Py_ssize_t size = PyList_Size(list);
    return PyList_SetSlice(list, size, size, more);
}

static inline int is_set(PyObject *field) { return field != NULL && field != Py_None; }

static inline PyObject *call_method(PyObject *object, const char *name, PyObject *argument) {
    PyObject *method = PyObject_GetAttrString(object, name);
    PyObject *found = method == NULL ? NULL : PyObject_CallFunctionObjArgs(method, argument, NULL);
    Py_XDECREF(method);
    return found;
}

#define ADD(variable, name, Type, flags, slots, base)                                                                            \
    ((variable = add_type(module, name, "tektite.kernels.call." name, sizeof(Type), flags, slots, base)) != NULL)

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

/* ---- What files offer to each other */

extern PRIVATE PyTypeObject *flow_type;

/* What a field of a dataflow refers to: a new reference, or NULL with an error. */
#define FIELD(flow, name) (((Flow *)(flow))->name == NULL ? not_begun() : Py_NewRef(((Flow *)(flow))->name))
static inline PyObject *not_begun(void) {
    PyErr_SetString(PyExc_SystemError, "a record has not begun");
    return NULL;
}

/* `Dataflow.wake`. */
PRIVATE PyObject *woken_flow(PyObject *flow);
/* The dataflow of a node: a new reference. */
PRIVATE PyObject *flow_of(PyObject *node);

extern PRIVATE PyTypeObject *spine_type;
extern PRIVATE PyObject *nothing; /* the version without batches */

/* A batch of sorted, consolidated rows. */
PRIVATE PyObject *new_batch(PyObject *rows, PyObject *lower, PyObject *upper, PyObject *since);
/* The rows of a batch, a chunk or an open merge. */
PRIVATE int64_t rows_in(PyObject *batch);
/* The epoch of the first time of a frontier. */
PRIVATE int64_t first_epoch(PyObject *frontier);
/* The batches of a spine. A new reference. */
PRIVATE PyObject *version_in(Spine *spine);
/* Whether a spine's newest batches are to be merged, the last of them of so many rows. */
PRIVATE int is_to_join(Spine *spine, int64_t newest);
/* `Spine.insert` and `Spine.append`. */
PRIVATE int insert_batch(Spine *spine, PyObject *batch);
PRIVATE int append_batches(Spine *spine, PyObject *batches);
/* `Spine.make_room`. */
PRIVATE int make_room_in(Spine *spine, int64_t rows);

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
/* Whether batches wait in a handle, with rows or without. */
PRIVATE int has_batches(PyObject *handle);
PRIVATE int64_t rows_of(PyObject *batches);
/* The table of a version. Borrowed. */
PRIVATE PyObject *table_of(PyObject *version);

/* `Scope.schedule`. */
PRIVATE int schedule_in(PyObject *scope, PyObject *position, PyObject *moment);
/* `ArrangementReader.wake`. */
PRIVATE int wake_reader(PyObject *reader, PyObject *moment);
/* The frontier behind a moment of a scope in a sweep up to `high`: a new reference. */
PRIVATE PyObject *passed_upper(PyObject *scope, PyObject *moment, PyObject *high);

/* Adds what is in the other files to the module. */
PRIVATE int add_spine_types(PyObject *module);
PRIVATE int add_trace_types(PyObject *module);
PRIVATE int add_agenda(PyObject *module);
PRIVATE int add_steps(PyObject *module);
PRIVATE int add_writes(PyObject *module);
PRIVATE int add_nodes(PyObject *module);
PRIVATE int add_signals(PyObject *module);

/* Whether a signal, or an exception, waits until the calling thread leaves a block in which it is held. */
PRIVATE int signal_waits(void);

#endif
