/* Batches, versions and spines: `Version`, and what `Batch` and `Spine` of tektite/trace inherit. */

#include "traces.h"

PyTypeObject *spine_type;
PyObject *nothing;
static PyTypeObject *version_type, *batch_type;
static PyTypeObject *whole_batch; /* the class that Python derives from `BatchRecord` */

enum { LEVEL_ONE = 64 /* rows from which on a batch is not of the lowest level */ };

RECORD(spine, SPINE_FIELDS)
RECORD(version, VERSION_FIELDS)

/* ---- Batches */

static int clear_batch(PyObject *self) {
    Batch *batch = (Batch *)self;
    Py_CLEAR(batch->lower);
    Py_CLEAR(batch->upper);
    Py_CLEAR(batch->_since);
    return 0;
}

static void free_batch(PyObject *self) {
    PyTypeObject *class = Py_TYPE(self);
    clear_batch(self);
    clear_rows((Rows *)self);
    ((freefunc)PyType_GetSlot(class, Py_tp_free))(self);
    Py_DECREF(class);
}

static PyObject *batch_of(PyTypeObject *class, PyObject *rows, PyObject *lower, PyObject *upper, PyObject *since) {
    if (class == NULL || !PyObject_TypeCheck(rows, rows_type) || ((Rows *)rows)->words == NULL) {
        PyErr_SetString(PyExc_TypeError, "a batch is made of rows");
        return NULL;
    }
    Batch *batch = (Batch *)PyType_GenericAlloc(class, 0);
    if (batch == NULL)
        return NULL;
    share_rows(&batch->rows, (Rows *)rows);
    batch->lower = Py_NewRef(lower);
    batch->upper = Py_NewRef(upper);
    batch->_since = Py_NewRef(since);
    return (PyObject *)batch;
}

PyObject *new_batch(PyObject *rows, PyObject *lower, PyObject *upper, PyObject *since) {
    return batch_of(whole_batch, rows, lower, upper, since);
}

PyDoc_STRVAR(of_doc, "of(rows, lower, upper, since): rows that are sorted and consolidated, as a batch.");
static PyObject *of(PyObject *class, PyObject *given) {
    PyObject *rows, *lower, *upper, *since;
    if (!PyArg_ParseTuple(given, "OOOO", &rows, &lower, &upper, &since))
        return NULL;
    return batch_of((PyTypeObject *)class, rows, lower, upper, since);
}

PyDoc_STRVAR(makes_doc, "makes(): let C make batches of this class.");
static PyObject *makes(PyObject *class, PyObject *unused) {
    PyTypeObject *before = whole_batch;
    whole_batch = (PyTypeObject *)Py_NewRef(class);
    Py_XDECREF((PyObject *)before);
    Py_RETURN_NONE;
}

int64_t rows_in(PyObject *batch) {
    if (PyObject_TypeCheck(batch, rows_type))
        return ((Rows *)batch)->n;
    PyObject *n = PyObject_GetAttrString(batch, "n"); /* a merge that is open */
    const int64_t rows = n == NULL ? -1 : PyLong_AsLongLong(n);
    Py_XDECREF(n);
    return rows;
}

int64_t rows_of(PyObject *batches) {
    int64_t rows = 0;
    for (Py_ssize_t i = 0, count = PyList_Size(batches); i < count; i++)
        rows += rows_in(PyList_GetItem(batches, i));
    return rows;
}

/* The epoch of the first time of a frontier. */
int64_t first_epoch(PyObject *frontier) {
    PyObject *time = frontier == NULL ? NULL : PyTuple_GetItem(frontier, 0);
    PyObject *epoch = time == NULL ? NULL : PyTuple_GetItem(time, 0);
    return epoch == NULL ? -1 : PyLong_AsLongLong(epoch);
}

/* ---- Versions */

/* Takes over the reference to a tuple of batches, which may be NULL. */
static PyObject *version_of(PyObject *batches) {
    Version *version = batches == NULL ? NULL : (Version *)PyType_GenericAlloc(version_type, 0);
    if (version == NULL) {
        Py_XDECREF(batches);
        return NULL;
    }
    version->batches = batches;
    version->table = addresses_of(batches);
    if (version->table == NULL)
        Py_CLEAR(version);
    return (PyObject *)version;
}

static int begin_version(PyObject *self, PyObject *given, PyObject *names) {
    Version *version = (Version *)self;
    PyObject *batches;
    if (!PyArg_ParseTuple(given, "O!", &PyTuple_Type, &batches))
        return -1;
    PyObject *table = addresses_of(batches);
    if (table == NULL)
        return -1;
    set_field(&version->batches, batches);
    set_field(&version->table, table);
    Py_DECREF(table);
    return 0;
}

static PyObject *sum_over(PyObject *batches, const char *name) {
    PyObject *sum = PyLong_FromLong(0);
    for (Py_ssize_t i = 0; sum != NULL && i < PyTuple_Size(batches); i++) {
        PyObject *one = PyObject_GetAttrString(PyTuple_GetItem(batches, i), name);
        PyObject *more = one == NULL ? NULL : PyNumber_Add(sum, one);
        Py_XDECREF(one);
        Py_DECREF(sum);
        sum = more;
    }
    return sum;
}

static PyObject *version_rows(PyObject *self, void *unused) { return sum_over(((Version *)self)->batches, "n"); }
static PyObject *version_bytes(PyObject *self, void *unused) { return sum_over(((Version *)self)->batches, "bytes"); }

/* ---- Spines */

/* The batches of a spine. A new reference. */
PyObject *version_in(Spine *spine) {
    if (is_set(spine->known))
        return Py_NewRef(spine->known);
    if (spine->_stale == Py_False && spine->_open != NULL && PyTuple_Size(spine->_open) == 0 && spine->_units != NULL) {
        PyObject *version = version_of(PyList_AsTuple(spine->_units));
        if (version != NULL)
            set_field(&spine->known, version);
        return version;
    }
    return PyObject_CallMethod((PyObject *)spine, "_find_version", NULL);
}

static PyObject *spine_version(PyObject *self, void *unused) { return version_in((Spine *)self); }

/* Whether as many small batches wait as may wait, or larger ones: then they are to be merged. */
int is_to_join(Spine *spine, int64_t newest) {
    const Py_ssize_t units = PyList_Size(spine->_units);
    return newest >= LEVEL_ONE || units - PyLong_AsLongLong(spine->_joined) > PyLong_AsLongLong(spine->_may_wait);
}

static int is_at_rest(Spine *spine) {
    return spine->_stale == Py_False && spine->_open != NULL && PyTuple_Size(spine->_open) == 0 && spine->_units != NULL;
}

int insert_batch(Spine *spine, PyObject *given) {
    Batch *batch = (Batch *)given;
    if (batch->rows.n == 0) {
        set_field(&spine->upper, batch->upper);
        return 0;
    }
    PyObject *done;
    if (batch->rows.n >= LEVEL_ONE || !is_at_rest(spine)) {
        done = call_method((PyObject *)spine, "_insert_large", given);
    } else {
        if (add_to_field(&spine->fresh, batch->rows.n) < 0)
            return -1;
        set_field(&spine->upper, batch->upper);
        set_field(&spine->known, Py_None);
        if (PyList_Append(spine->_units, given) < 0)
            return -1;
        if (!is_to_join(spine, 0))
            return 0;
        done = PyObject_CallMethod((PyObject *)spine, "join_waiting", NULL);
    }
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

PyDoc_STRVAR(insert_doc, "insert(batch): append the batch that follows all others, and do its share of merging.");
static PyObject *insert(PyObject *self, PyObject *batch) {
    if (!PyObject_TypeCheck(batch, batch_type)) {
        PyErr_SetString(PyExc_TypeError, "a spine takes batches");
        return NULL;
    }
    return insert_batch((Spine *)self, batch) < 0 ? NULL : Py_NewRef(Py_None);
}

int append_batches(Spine *spine, PyObject *batches) {
    PyObject *last = PyList_GetItem(batches, PyList_Size(batches) - 1);
    if (last == NULL || spine->_units == NULL)
        return -1;
    set_field(&spine->upper, ((Batch *)last)->upper);
    const Py_ssize_t units = PyList_Size(spine->_units);
    if (units && PyList_GetItem(spine->_units, units - 1) == last)
        return 0;
    set_field(&spine->known, Py_None);
    return extend(spine->_units, batches);
}

PyDoc_STRVAR(append_doc, "append(batches): append a list of batches that follow all others. Appending the same ones again right "
                         "away does nothing.");
static PyObject *append(PyObject *self, PyObject *batches) {
    return append_batches((Spine *)self, batches) < 0 ? NULL : Py_NewRef(Py_None);
}

int make_room_in(Spine *spine, int64_t rows) {
    if (rows < LEVEL_ONE && is_at_rest(spine))
        return add_to_field(&spine->fresh, rows);
    PyObject *number = PyLong_FromLongLong(rows), *made = number == NULL ? NULL : call_method((PyObject *)spine, "_make_large_room", number);
    Py_XDECREF(number);
    Py_XDECREF(made);
    return made == NULL ? -1 : 0;
}

PyDoc_STRVAR(make_room_doc, "make_room(rows): do the merging that a batch of this many rows pays for before it is appended. The "
                            "contents stay.");
static PyObject *make_room(PyObject *self, PyObject *number) {
    const int64_t rows = PyLong_AsLongLong(number);
    return (rows == -1 && PyErr_Occurred()) || make_room_in((Spine *)self, rows) < 0 ? NULL : Py_NewRef(Py_None);
}

/* ---- Types */

#define SPINE_MEMBER(name) MEMBER(Spine, name),
#define VERSION_MEMBER(name) MEMBER(Version, name),
static PyMemberDef spine_members[] = {SPINE_FIELDS(SPINE_MEMBER){NULL, 0, 0, 0, NULL}};
static PyMemberDef version_members[] = {VERSION_FIELDS(VERSION_MEMBER){NULL, 0, 0, 0, NULL}};
static PyMemberDef batch_members[] = {MEMBER(Batch, lower), MEMBER(Batch, upper), MEMBER(Batch, _since), {NULL, 0, 0, 0, NULL}};
static PyMethodDef spine_methods[] = {{"insert", insert, METH_O, insert_doc},
                                      {"append", append, METH_O, append_doc},
                                      {"make_room", make_room, METH_O, make_room_doc},
                                      {NULL, NULL, 0, NULL}};
static PyMethodDef batch_methods[] = {{"of", of, METH_VARARGS | METH_CLASS, of_doc},
                                      {"makes", makes, METH_NOARGS | METH_CLASS, makes_doc},
                                      {NULL, NULL, 0, NULL}};
static PyGetSetDef spine_attributes[] = {{"version", spine_version, NULL, "The current batches.", NULL}, {NULL, NULL, NULL, NULL, NULL}};
static PyGetSetDef version_attributes[] = {{"rows", version_rows, NULL, "Rows of all batches.", NULL},
                                           {"bytes", version_bytes, NULL, "Memory of all batches.", NULL},
                                           {NULL, NULL, NULL, NULL, NULL}};
static PyType_Slot spine_slots[] = {
    SLOTS(spine), {Py_tp_members, spine_members}, {Py_tp_methods, spine_methods}, {Py_tp_getset, spine_attributes}, {0, NULL}};
PyDoc_STRVAR(version_class_doc, "What a reader sees of a trace: an immutable list of batches. `table` lists the addresses of their "
                                "heads, oldest first.");
static PyType_Slot version_slots[] = {SLOTS(version),
                                      {Py_tp_doc, (void *)version_class_doc},
                                      {Py_tp_init, begin_version},
                                      {Py_tp_members, version_members},
                                      {Py_tp_getset, version_attributes},
                                      {0, NULL}};
static PyType_Slot batch_slots[] = {
    {Py_tp_dealloc, free_batch}, {Py_tp_members, batch_members}, {Py_tp_methods, batch_methods}, {0, NULL}};

int add_spine_types(PyObject *module) {
    if (!ADD(batch_type, "BatchRecord", Batch, Py_TPFLAGS_BASETYPE, batch_slots, rows_type)
        || !ADD(version_type, "Version", Version, Py_TPFLAGS_HAVE_GC, version_slots, NULL)
        || !ADD(spine_type, "SpineRecord", Spine, Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, spine_slots, NULL))
        return -1;
    nothing = version_of(PyTuple_New(0));
    return nothing == NULL || PyModule_AddObjectRef(module, "EMPTY", nothing) < 0 ? -1 : PyModule_AddIntMacro(module, FEW_ROWS);
}
