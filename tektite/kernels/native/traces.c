/* The parts of a trace that every epoch of one row passes through: `Version`, and what `Batch`, `Spine`, `Handle` and `Trace` of
   tektite/trace inherit. It is C because such an epoch is a hundred steps of a third of a microsecond each; see "One row at a
   time" in docs/decisions.md.

   A record is an object with a fixed set of attributes, which Python reads and writes as it does slots, and C as fields. Python
   derives a class from it, with all methods that are called seldom. What is here is the whole of a method for batches of any
   size, and where something rare is to be done, it calls the method of the derived class that does that. There is no other
   implementation.

   Interrupts: Python raises them between two of its own steps, so that no function here is divided by one, except where it calls
   Python. What changes contents is therefore written as in Python: each step leaves the object whole. */

#include "rows.h"
#include "traces.h"

#define TRACE_FIELDS(F)                                                                                                          \
    F(_asked) F(_uppers) F(data) F(diffs) F(effort) F(handles) F(holds) F(memory) F(minted) F(on_mint) F(routes) F(shards)       \
    F(spines) F(times) F(unguarded)
#define SPINE_FIELDS(F)                                                                                                          \
    F(_allowed) F(_at_once) F(_effort) F(_frontier) F(_joined) F(_may_wait) F(_memory) F(_open) F(_open_table) F(_owed)          \
    F(_stale) F(_units) F(fresh) F(known) F(merged) F(shape) F(upper)
#define HANDLE_FIELDS(F) F(guarded_by) F(hold) F(pins) F(queues) F(reads_versions) F(trace) F(wake)
#define VERSION_FIELDS(F) F(batches) F(table)
#define MINT_FIELDS(F) F(batches) F(routed) F(shard) F(trace) F(version)

RECORD(Trace, trace, TRACE_FIELDS)
RECORD(Spine, spine, SPINE_FIELDS)
RECORD(Handle, handle, HANDLE_FIELDS)
RECORD(Version, version, VERSION_FIELDS)
RECORD(Mint, mint, MINT_FIELDS)

typedef struct {
    Rows rows;
    PyObject *lower, *upper, *_since;
} Batch;

static PyTypeObject *trace_type, *spine_type, *handle_type, *version_type, *mint_type, *batch_type;
static PyTypeObject *whole_batch; /* the class that Python derives from `BatchRecord` */
static PyObject *nothing;         /* the version without batches */

enum { LEVEL_ONE = 64 /* rows from which on a batch is not of the lowest level */ };

/* A borrowed element of a list that a record has, or NULL with an error. */
static PyObject *element(PyObject *list, Py_ssize_t at) {
    if (list == NULL || !PyList_Check(list)) {
        PyErr_SetString(PyExc_SystemError, "a record has not begun");
        return NULL;
    }
    return PyList_GetItem(list, at);
}

static int put_element(PyObject *list, Py_ssize_t at, PyObject *value) { return PyList_SetItem(list, at, Py_NewRef(value)); }

static int add_to_field(PyObject **field, int64_t more) {
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
static int extend(PyObject *list, PyObject *more) {
    const Py_ssize_t size = PyList_Size(list);
    return PyList_SetSlice(list, size, size, more);
}

static int is_set(PyObject *field) { return field != NULL && field != Py_None; }

static PyObject *call_method(PyObject *object, const char *name, PyObject *argument) {
    PyObject *method = PyObject_GetAttrString(object, name);
    PyObject *found = method == NULL ? NULL : PyObject_CallFunctionObjArgs(method, argument, NULL);
    Py_XDECREF(method);
    return found;
}

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
    if (class == NULL || !PyObject_TypeCheck(rows, rows_type)) {
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

static int64_t rows_in(PyObject *batch) {
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
static int64_t first_epoch(PyObject *frontier) {
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
static PyObject *version_in(Spine *spine) {
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

/* The spine of a shard, which a trace has. Borrowed. */
static Spine *spine_at(Trace *trace, Py_ssize_t shard) {
    PyObject *spine = element(trace->spines, shard);
    if (spine != NULL && !PyObject_TypeCheck(spine, spine_type)) {
        PyErr_SetString(PyExc_TypeError, "a trace keeps spines");
        return NULL;
    }
    return (Spine *)spine;
}

/* The version of a shard. A new reference. */
static PyObject *version_at(Trace *trace, Py_ssize_t shard) {
    if (!is_set(trace->spines))
        return Py_NewRef(nothing);
    Spine *spine = spine_at(trace, shard);
    return spine == NULL ? NULL : version_in(spine);
}

/* Whether as many small batches wait as may wait, or larger ones: then they are to be merged. */
static int is_to_join(Spine *spine, int64_t newest) {
    const Py_ssize_t units = PyList_Size(spine->_units);
    return newest >= LEVEL_ONE || units - PyLong_AsLongLong(spine->_joined) > PyLong_AsLongLong(spine->_may_wait);
}

static int is_at_rest(Spine *spine) {
    return spine->_stale == Py_False && spine->_open != NULL && PyTuple_Size(spine->_open) == 0 && spine->_units != NULL;
}

static int insert_batch(Spine *spine, PyObject *given) {
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

static int append_batches(Spine *spine, PyObject *batches) {
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

/* ---- Handles */

static int put_batches(Handle *handle, Py_ssize_t shard, PyObject *batches, PyObject *version) {
    PyObject *queue = element(handle->queues, shard);
    if (queue == NULL)
        return -1;
    Py_INCREF(queue);
    int done = 0;
    if (PyList_Size(queue) == 0) {
        if (handle->reads_versions == Py_True)
            done = put_element(handle->pins, shard, version);
        if (done == 0 && is_set(handle->wake)) {
            PyObject *woken = PyObject_CallNoArgs(handle->wake);
            done = woken == NULL ? -1 : 0;
            Py_XDECREF(woken);
        }
    }
    if (done == 0)
        done = extend(queue, batches);
    Py_DECREF(queue);
    return done;
}

PyDoc_STRVAR(put_doc, "put(shard, batches, version): queue batches that are minted. `version` is what the shard holds before them.");
static PyObject *put(PyObject *self, PyObject *given) {
    Py_ssize_t shard;
    PyObject *batches, *version;
    if (!PyArg_ParseTuple(given, "nOO", &shard, &batches, &version) || put_batches((Handle *)self, shard, batches, version) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *take_all(Handle *handle, Py_ssize_t shard) {
    PyObject *queue = element(handle->queues, shard), *old = element(handle->pins, shard);
    if (queue == NULL || old == NULL || handle->trace == NULL)
        return NULL;
    PyObject *new = version_at((Trace *)handle->trace, shard);
    if (new == NULL)
        return NULL;
    const int is_empty = PyList_Size(queue) == 0;
    PyObject *delta = is_empty ? PyTuple_New(0) : PyList_AsTuple(queue);
    PyObject *found = delta == NULL ? NULL : PyTuple_Pack(3, is_empty ? new : old, delta, new);
    Py_XDECREF(delta);
    Py_DECREF(new);
    if (found == NULL || is_empty)
        return found;
    PyObject *empty = PyList_New(0);
    if (empty == NULL || PyList_SetItem(handle->queues, shard, empty) < 0 || put_element(handle->pins, shard, nothing) < 0)
        Py_CLEAR(found);
    return found;
}

PyDoc_STRVAR(take_doc, "take(shard): consume the whole queue of a shard: (old, delta, new).");
static PyObject *take(PyObject *self, PyObject *number) {
    const Py_ssize_t shard = PyLong_AsSsize_t(number);
    return shard == -1 && PyErr_Occurred() ? NULL : take_all((Handle *)self, shard);
}

PyObject *taken_rows(PyObject *self, Py_ssize_t shard, int64_t epoch) {
    if (!PyObject_TypeCheck(self, handle_type)) {
        PyErr_SetString(PyExc_TypeError, "rows are taken from a handle");
        return NULL;
    }
    PyObject *queue = element(((Handle *)self)->queues, shard);
    if (queue == NULL)
        return NULL;
    for (Py_ssize_t i = 0, count = epoch == INT64_MAX ? 0 : PyList_Size(queue); i < count; i++)
        if (first_epoch(((Batch *)PyList_GetItem(queue, i))->upper) > epoch)
            return PyObject_CallMethod(self, "_take_part", "nL", shard, (long long)epoch);
    return take_all((Handle *)self, shard);
}

PyDoc_STRVAR(take_before_doc, "take_before(shard, epoch): consume exactly the updates before `epoch`, splitting queued batches that "
                              "straddle it.");
static PyObject *take_before(PyObject *self, PyObject *given) {
    Py_ssize_t shard;
    long long epoch;
    return PyArg_ParseTuple(given, "nL", &shard, &epoch) ? taken_rows(self, shard, epoch) : NULL;
}

int64_t rows_waiting(PyObject *handle) {
    PyObject *queues = ((Handle *)handle)->queues;
    int64_t rows = 0;
    for (Py_ssize_t shard = 0, shards = queues == NULL ? 0 : PyList_Size(queues); shard < shards; shard++)
        rows += rows_of(PyList_GetItem(queues, shard));
    return rows;
}

static PyObject *queued(PyObject *self, void *unused) { return PyLong_FromLongLong(rows_waiting(self)); }

PyDoc_STRVAR(waiting_doc, "waiting(): whether a batch waits in some queue.");
static PyObject *waiting(PyObject *self, PyObject *unused) {
    PyObject *queues = ((Handle *)self)->queues;
    for (Py_ssize_t shard = 0, shards = queues == NULL ? 0 : PyList_Size(queues); shard < shards; shard++)
        if (PyList_Size(PyList_GetItem(queues, shard)))
            Py_RETURN_TRUE;
    Py_RETURN_FALSE;
}

/* ---- Traces */

PyObject *version_of_trace(PyObject *trace, Py_ssize_t shard) { return version_at((Trace *)trace, shard); }

PyObject *table_of(PyObject *version) { return ((Version *)version)->table; }

PyDoc_STRVAR(version_doc, "version(shard): everything minted so far, as far as it is kept.");
static PyObject *version(PyObject *self, PyObject *number) {
    const Py_ssize_t shard = PyLong_AsSsize_t(number);
    return shard == -1 && PyErr_Occurred() ? NULL : version_at((Trace *)self, shard);
}

/* Puts batches into the queue of every handle that gets all of them. One that has them already gets nothing. */
static int put_to_all(Trace *trace, Py_ssize_t shard, PyObject *batches, PyObject *version) {
    PyObject *last = PyList_GetItem(batches, PyList_Size(batches) - 1);
    if (!PyDict_Size(trace->unguarded))
        return 0;
    PyObject *handles = PyDict_Keys(trace->unguarded); /* what wakes may change it */
    if (handles == NULL)
        return -1;
    int done = 0;
    for (Py_ssize_t i = 0, count = PyList_Size(handles); done == 0 && i < count; i++) {
        Handle *handle = (Handle *)PyList_GetItem(handles, i);
        PyObject *queue = element(handle->queues, shard);
        const Py_ssize_t waits = queue == NULL ? 0 : PyList_Size(queue);
        if (queue == NULL)
            done = -1;
        else if (!waits || PyList_GetItem(queue, waits - 1) != last)
            done = put_batches(handle, shard, batches, version);
    }
    Py_DECREF(handles);
    return done;
}

/* Rows where they are to lie: many, where memory is limited, may go to a file. A new reference. */
static PyObject *placed(Trace *trace, PyObject *rows) {
    return is_set(trace->memory) && rows_in(rows) >= FEW_ROWS ? call_method((PyObject *)trace, "_placed", rows) : Py_NewRef(rows);
}

int minted_rows(PyObject *self, Py_ssize_t shard, PyObject *rows, PyObject *upper) {
    Trace *trace = (Trace *)self;
    if (!PyObject_TypeCheck(self, trace_type)) {
        PyErr_SetString(PyExc_TypeError, "rows are minted into a trace");
        return -1;
    }
    PyObject *lower = element(trace->_uppers, shard);
    if (lower == NULL)
        return -1;
    if (!is_set(trace->spines) && !is_set(trace->on_mint) && !PyDict_Size(trace->handles)) { /* nobody reads it */
        const int64_t more = rows_in(rows);
        return put_element(trace->_uppers, shard, upper) < 0 ? -1 : add_to_field(&trace->minted, more);
    }
    Py_INCREF(lower);
    rows = placed(trace, rows);
    PyObject *batch = rows == NULL ? NULL : batch_of(whole_batch, rows, lower, upper, lower);
    Py_XDECREF(rows);
    Py_DECREF(lower);
    PyObject *batches = batch == NULL ? NULL : PyList_New(1);
    if (batches == NULL) {
        Py_XDECREF(batch);
        return -1;
    }
    PyList_SetItem(batches, 0, batch);
    PyObject *version = NULL;
    int done = -1;
    Spine *spine = NULL;
    if (put_element(trace->_uppers, shard, upper) < 0 || add_to_field(&trace->minted, rows_in(batch)) < 0)
        goto end;
    if (is_set(trace->on_mint)) {
        PyObject *told = PyObject_CallFunction(trace->on_mint, "nO", shard, batch);
        if (told == NULL)
            goto end;
        Py_DECREF(told);
    }
    if (is_set(trace->spines) && (spine = spine_at(trace, shard)) == NULL)
        goto end;
    Py_XINCREF((PyObject *)spine);
    version = spine == NULL ? Py_NewRef(nothing) : version_in(spine);
    if (version == NULL || put_to_all(trace, shard, batches, version) < 0)
        goto end;
    if (is_set(trace->routes)) {
        PyObject *routed = PyObject_CallMethod(self, "_put_routed", "nOO", shard, batch, version);
        if (routed == NULL)
            goto end;
        Py_DECREF(routed);
    }
    if (spine == NULL || insert_batch(spine, batch) == 0)
        done = 0;
end:
    Py_XDECREF(version);
    Py_XDECREF((PyObject *)spine);
    Py_DECREF(batches);
    return done;
}

PyDoc_STRVAR(mint_doc,
             "mint(shard, rows, upper): append sorted, consolidated rows as the batch of all updates up to `upper`: to the queue of "
             "every handle, and to the spine if somebody reads versions.");
static PyObject *mint(PyObject *self, PyObject *given) {
    Py_ssize_t shard;
    PyObject *rows, *upper;
    if (!PyArg_ParseTuple(given, "nOO", &shard, &rows, &upper) || minted_rows(self, shard, rows, upper) < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* ---- Minting in two steps */

PyObject *prepared_mint(PyObject *self, Py_ssize_t shard, PyObject *chunks, PyObject *upper) {
    Trace *trace = (Trace *)self;
    if (!PyObject_TypeCheck(self, trace_type)) {
        PyErr_SetString(PyExc_TypeError, "batches are minted into a trace");
        return NULL;
    }
    PyObject *lower = element(trace->_uppers, shard);
    const Py_ssize_t count = PyList_Size(chunks);
    Mint *made = lower == NULL ? NULL : (Mint *)PyType_GenericAlloc(mint_type, 0);
    if (made == NULL)
        return NULL;
    made->shard = PyLong_FromSsize_t(shard);
    made->trace = Py_NewRef(self);
    made->batches = PyList_New(count);
    for (Py_ssize_t i = 0; made->batches != NULL && i < count; i++, lower = upper) {
        PyObject *rows = placed(trace, PyList_GetItem(chunks, i));
        PyObject *batch = rows == NULL ? NULL : batch_of(whole_batch, rows, lower, upper, lower);
        Py_XDECREF(rows);
        if (batch == NULL)
            Py_CLEAR(made->batches);
        else
            PyList_SetItem(made->batches, i, batch);
    }
    if (made->batches == NULL || made->shard == NULL)
        goto failed;
    made->routed = is_set(trace->routes) ? call_method(self, "_routed", made->batches) : Py_NewRef(Py_None);
    if (made->routed == NULL)
        goto failed;
    if (!is_set(trace->spines)) {
        made->version = Py_NewRef(nothing);
        return (PyObject *)made;
    }
    Spine *spine = spine_at(trace, shard);
    if (spine == NULL)
        goto failed;
    Py_INCREF((PyObject *)spine);
    PyObject *room = PyObject_CallMethod((PyObject *)spine, "make_room", "L", (long long)rows_of(made->batches));
    made->version = room == NULL ? NULL : version_in(spine);
    Py_XDECREF(room);
    Py_DECREF((PyObject *)spine);
    if (made->version != NULL)
        return (PyObject *)made;
failed:
    Py_DECREF((PyObject *)made);
    return NULL;
}

PyDoc_STRVAR(prepare_doc,
             "prepare(shard, chunks, upper): minting in two steps, for who may not fail half way: what can fail is done here, and "
             "`Mint.apply` does the rest. The chunks, none of them empty, are one batch each. Nothing else may be minted in between.");
static PyObject *prepare(PyObject *self, PyObject *given) {
    Py_ssize_t shard;
    PyObject *chunks, *upper;
    if (!PyArg_ParseTuple(given, "nO!O", &shard, &PyList_Type, &chunks, &upper))
        return NULL;
    return prepared_mint(self, shard, chunks, upper);
}

PyDoc_STRVAR(make_room_doc, "make_room(rows): do the merging that a batch of this many rows pays for before it is appended. The "
                            "contents stay.");
static PyObject *make_room(PyObject *self, PyObject *number) {
    Spine *spine = (Spine *)self;
    const int64_t rows = PyLong_AsLongLong(number);
    if (rows == -1 && PyErr_Occurred())
        return NULL;
    if (rows >= LEVEL_ONE || !is_at_rest(spine))
        return call_method(self, "_make_large_room", number);
    return add_to_field(&spine->fresh, rows) < 0 ? NULL : Py_NewRef(Py_None);
}

PyDoc_STRVAR(apply_doc, "apply(): mint the batches. An exception may end this at any point: called again before anything else is "
                        "minted, it does what is left.");
static PyObject *apply(PyObject *self, PyObject *unused) {
    Mint *given = (Mint *)self;
    Trace *trace = (Trace *)given->trace;
    const Py_ssize_t shard = PyLong_AsSsize_t(given->shard);
    PyObject *before = element(trace->_uppers, shard);
    PyObject *last = PyList_GetItem(given->batches, PyList_Size(given->batches) - 1);
    if (before == NULL || last == NULL)
        return NULL;
    PyObject *upper = ((Batch *)last)->upper;
    if (before != upper) {
        if (put_element(trace->_uppers, shard, upper) < 0 || add_to_field(&trace->minted, rows_of(given->batches)) < 0)
            return NULL;
    }
    if (put_to_all(trace, shard, given->batches, given->version) < 0)
        return NULL;
    if (given->routed != Py_None) {
        PyObject *routed = call_method((PyObject *)trace, "_put_prepared", self);
        if (routed == NULL)
            return NULL;
        Py_DECREF(routed);
    }
    if (is_set(trace->spines)) {
        Spine *spine = spine_at(trace, shard);
        if (spine == NULL || append_batches(spine, given->batches) < 0)
            return NULL;
    }
    Py_RETURN_NONE;
}

static int settle_shard(Trace *trace, Py_ssize_t shard) {
    if (!is_set(trace->spines))
        return 0;
    Spine *spine = spine_at(trace, shard);
    if (spine == NULL)
        return -1;
    const Py_ssize_t units = spine->_units == NULL ? 0 : PyList_Size(spine->_units);
    if (spine->_stale == Py_False && (units < 2 || !is_to_join(spine, rows_in(PyList_GetItem(spine->_units, units - 1)))))
        return 0;
    PyObject *done = PyObject_CallMethod((PyObject *)trace, "_settle", "n", shard);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

PyDoc_STRVAR(settle_doc, "settle(shard): do the merging that `Mint.apply` has left. Rows whose multiplicities do not add up to 64 "
                         "bits stay apart, for whoever adds them up to report.");
static PyObject *settle(PyObject *self, PyObject *number) {
    const Py_ssize_t shard = PyLong_AsSsize_t(number);
    if ((shard == -1 && PyErr_Occurred()) || settle_shard((Trace *)self, shard) < 0)
        return NULL;
    Py_RETURN_NONE;
}

int applied_mint(PyObject *mint) {
    PyObject *done = apply(mint, NULL);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

int settled_mint(PyObject *mint) { return settle_shard((Trace *)((Mint *)mint)->trace, PyLong_AsSsize_t(((Mint *)mint)->shard)); }

int64_t rows_of_mint(PyObject *mint) { return rows_of(((Mint *)mint)->batches); }

/* ---- Types */

#define TRACE_MEMBER(name) MEMBER(Trace, name),
#define SPINE_MEMBER(name) MEMBER(Spine, name),
#define HANDLE_MEMBER(name) MEMBER(Handle, name),
#define VERSION_MEMBER(name) MEMBER(Version, name),
#define MINT_MEMBER(name) MEMBER(Mint, name),

static PyMemberDef trace_members[] = {TRACE_FIELDS(TRACE_MEMBER){NULL, 0, 0, 0, NULL}};
static PyMemberDef spine_members[] = {SPINE_FIELDS(SPINE_MEMBER){NULL, 0, 0, 0, NULL}};
static PyMemberDef handle_members[] = {HANDLE_FIELDS(HANDLE_MEMBER){NULL, 0, 0, 0, NULL}};
static PyMemberDef version_members[] = {VERSION_FIELDS(VERSION_MEMBER){NULL, 0, 0, 0, NULL}};
static PyMemberDef mint_members[] = {MINT_FIELDS(MINT_MEMBER){NULL, 0, 0, 0, NULL}};
static PyMemberDef batch_members[] = {MEMBER(Batch, lower), MEMBER(Batch, upper), MEMBER(Batch, _since), {NULL, 0, 0, 0, NULL}};

static PyMethodDef trace_methods[] = {{"mint", mint, METH_VARARGS, mint_doc},
                                      {"prepare", prepare, METH_VARARGS, prepare_doc},
                                      {"settle", settle, METH_O, settle_doc},
                                      {"version", version, METH_O, version_doc},
                                      {NULL, NULL, 0, NULL}};
static PyMethodDef spine_methods[] = {{"insert", insert, METH_O, insert_doc},
                                      {"append", append, METH_O, append_doc},
                                      {"make_room", make_room, METH_O, make_room_doc},
                                      {NULL, NULL, 0, NULL}};
static PyMethodDef handle_methods[] = {{"put", put, METH_VARARGS, put_doc},
                                       {"take", take, METH_O, take_doc},
                                       {"take_before", take_before, METH_VARARGS, take_before_doc},
                                       {"waiting", waiting, METH_NOARGS, waiting_doc},
                                       {NULL, NULL, 0, NULL}};
static PyMethodDef mint_methods[] = {{"apply", apply, METH_NOARGS, apply_doc}, {NULL, NULL, 0, NULL}};
static PyMethodDef batch_methods[] = {{"of", of, METH_VARARGS | METH_CLASS, of_doc},
                                      {"makes", makes, METH_NOARGS | METH_CLASS, makes_doc},
                                      {NULL, NULL, 0, NULL}};
static PyGetSetDef spine_attributes[] = {{"version", spine_version, NULL, "The current batches.", NULL}, {NULL, NULL, NULL, NULL, NULL}};
static PyGetSetDef handle_attributes[] = {{"queued", queued, NULL, "The rows of all batches that wait.", NULL},
                                          {NULL, NULL, NULL, NULL, NULL}};
static PyGetSetDef version_attributes[] = {{"rows", version_rows, NULL, "Rows of all batches.", NULL},
                                           {"bytes", version_bytes, NULL, "Memory of all batches.", NULL},
                                           {NULL, NULL, NULL, NULL, NULL}};

static PyType_Slot trace_slots[] = {SLOTS(trace), {Py_tp_members, trace_members}, {Py_tp_methods, trace_methods}, {0, NULL}};
static PyType_Slot spine_slots[] = {
    SLOTS(spine), {Py_tp_members, spine_members}, {Py_tp_methods, spine_methods}, {Py_tp_getset, spine_attributes}, {0, NULL}};
static PyType_Slot handle_slots[] = {
    SLOTS(handle), {Py_tp_members, handle_members}, {Py_tp_methods, handle_methods}, {Py_tp_getset, handle_attributes}, {0, NULL}};
PyDoc_STRVAR(version_class_doc, "What a reader sees of a trace: an immutable list of batches. `table` lists the addresses of their "
                                "heads, oldest first.");
static PyType_Slot version_slots[] = {SLOTS(version),
                                      {Py_tp_doc, (void *)version_class_doc},
                                      {Py_tp_init, begin_version},
                                      {Py_tp_members, version_members},
                                      {Py_tp_getset, version_attributes},
                                      {0, NULL}};
PyDoc_STRVAR(mint_class_doc, "Batches of one shard that are ready to be minted. `version` is what the shard holds before them, and "
                             "`routed` what of them guarded handles get, if there are some.");
static PyType_Slot mint_slots[] = {
    SLOTS(mint), {Py_tp_doc, (void *)mint_class_doc}, {Py_tp_members, mint_members}, {Py_tp_methods, mint_methods}, {0, NULL}};
static PyType_Slot batch_slots[] = {
    {Py_tp_dealloc, free_batch}, {Py_tp_members, batch_members}, {Py_tp_methods, batch_methods}, {0, NULL}};

#define ADD(variable, name, Type, flags, slots, base)                                                                            \
    ((variable = add_type(module, name, "tektite.kernels.call." name, sizeof(Type), flags, slots, base)) != NULL)

int add_trace_types(PyObject *module) {
    const unsigned long record = Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC;
    if (!ADD(batch_type, "BatchRecord", Batch, Py_TPFLAGS_BASETYPE, batch_slots, rows_type)
        || !ADD(version_type, "Version", Version, Py_TPFLAGS_HAVE_GC, version_slots, NULL)
        || !ADD(spine_type, "SpineRecord", Spine, record, spine_slots, NULL)
        || !ADD(handle_type, "HandleRecord", Handle, record, handle_slots, NULL)
        || !ADD(trace_type, "TraceRecord", Trace, record, trace_slots, NULL)
        || !ADD(mint_type, "Mint", Mint, Py_TPFLAGS_HAVE_GC, mint_slots, NULL))
        return -1;
    nothing = version_of(PyTuple_New(0));
    if (PyModule_AddIntMacro(module, FEW_ROWS) < 0)
        return -1;
    return nothing == NULL || PyModule_AddObjectRef(module, "EMPTY", nothing) < 0 ? -1 : 0;
}
