/* The parts of a trace that every epoch of one row passes through: `Mint`, and what `Handle` and `Trace` of tektite/trace inherit;
   for batches, versions and spines see spines.c. It is C because such an epoch is a hundred steps of a third of a microsecond each; see "One row at a
   time" in docs/decisions.md.

   A record is an object with a fixed set of attributes, which Python reads and writes as it does slots, and C as fields. Python
   derives a class from it, with all methods that are called seldom. What is here is the whole of a method for batches of any
   size, and where something rare is to be done, it calls the method of the derived class that does that. There is no other
   implementation.

   Interrupts: Python raises them between two of its own steps, so that no function here is divided by one, except where it calls
   Python. What changes contents is therefore written as in Python: each step leaves the object whole. */

#include "traces.h"

static PyTypeObject *trace_type, *handle_type, *mint_type;
static PyObject *no_batches; /* the queue of a shard for which nothing waits: nobody adds to it */

RECORD(trace, TRACE_FIELDS)
RECORD(handle, HANDLE_FIELDS)
RECORD(mint, MINT_FIELDS)

/* ---- Handles */

/* The spine of a shard, which a trace has. A new reference: whatever calls Python or collects garbage may drop the last reader, and
   with it the spines. */
static Spine *spine_at(Trace *trace, Py_ssize_t shard) {
    PyObject *spine = element(trace->spines, shard);
    if (spine != NULL && !PyObject_TypeCheck(spine, spine_type)) {
        PyErr_SetString(PyExc_TypeError, "a trace keeps spines");
        return NULL;
    }
    return (Spine *)Py_XNewRef(spine);
}

/* The version of a shard. A new reference. */
static PyObject *version_at(Trace *trace, Py_ssize_t shard) {
    if (!is_set(trace->spines))
        return Py_NewRef(nothing);
    Spine *spine = spine_at(trace, shard);
    PyObject *version = spine == NULL ? NULL : version_in(spine);
    Py_XDECREF((PyObject *)spine);
    return version;
}

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
            PyObject *woken = PyObject_TypeCheck(handle->wake, flow_type) ? woken_flow(handle->wake) : PyObject_CallNoArgs(handle->wake);
            done = woken == NULL ? -1 : 0;
            Py_XDECREF(woken);
        }
    }
    if (done == 0 && queue != no_batches)
        done = extend(queue, batches);
    else if (done == 0) {
        PyObject *own = PySequence_List(batches);
        done = own == NULL || put_element(handle->queues, shard, own) < 0 ? -1 : 0;
        Py_XDECREF(own);
    }
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
    PyObject *new = handle->trace == NULL ? NULL : version_at((Trace *)handle->trace, shard);
    PyObject *queue = element(handle->queues, shard), *old = element(handle->pins, shard);
    if (new == NULL || queue == NULL || old == NULL) {
        Py_XDECREF(new);
        return NULL;
    }
    Py_INCREF(queue); /* making tuples may collect garbage, which may make a handle `forget` */
    Py_INCREF(old);
    const int is_empty = PyList_Size(queue) == 0;
    PyObject *delta = is_empty ? PyTuple_New(0) : PyList_AsTuple(queue);
    PyObject *found = delta == NULL ? NULL : PyTuple_Pack(3, is_empty ? new : old, delta, new);
    Py_XDECREF(delta);
    Py_DECREF(queue);
    Py_DECREF(old);
    Py_DECREF(new);
    if (found == NULL || is_empty)
        return found;
    if (put_element(handle->queues, shard, no_batches) < 0
        || (handle->reads_versions == Py_True && put_element(handle->pins, shard, nothing) < 0))
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

int has_batches(PyObject *handle) {
    PyObject *queues = ((Handle *)handle)->queues;
    for (Py_ssize_t shard = 0, shards = queues == NULL ? 0 : PyList_Size(queues); shard < shards; shard++)
        if (PyList_Size(PyList_GetItem(queues, shard)) > 0)
            return 1;
    return 0;
}

PyDoc_STRVAR(waiting_doc, "waiting(): whether a batch waits in some queue.");
static PyObject *waiting(PyObject *self, PyObject *unused) { return PyBool_FromLong(has_batches(self)); }

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
    if (PyObject_Size(trace->unguarded) <= 0)
        return PyErr_Occurred() ? -1 : 0;
    PyObject *handles = PySequence_List(trace->unguarded); /* what wakes may change it */
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

/* Counts rows that are minted up to `upper`: as a whole, or not at all where there is no memory. */
static int moved_to(Trace *trace, Py_ssize_t shard, PyObject *upper, int64_t rows) {
    PyObject *uppers = with_element(trace->_uppers, shard, upper);
    if (uppers == NULL || add_to_field(&trace->minted, rows) < 0) {
        Py_XDECREF(uppers);
        return -1;
    }
    set_field(&trace->_uppers, uppers);
    Py_DECREF(uppers);
    return 0;
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
    if (!is_set(trace->spines) && !is_set(trace->on_mint) && PyObject_Size(trace->handles) == 0) /* nobody reads it */
        return moved_to(trace, shard, upper, rows_in(rows));
    Py_INCREF(lower);
    rows = placed(trace, rows);
    PyObject *batch = rows == NULL ? NULL : new_batch(rows, lower, upper, lower);
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
    if (moved_to(trace, shard, upper, rows_in(batch)) < 0)
        goto end;
    if (is_set(trace->on_mint)) {
        PyObject *told = PyObject_CallFunction(trace->on_mint, "nO", shard, batch);
        if (told == NULL)
            goto end;
        Py_DECREF(told);
    }
    if (is_set(trace->spines) && (spine = spine_at(trace, shard)) == NULL)
        goto end;
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
        PyObject *batch = rows == NULL ? NULL : new_batch(rows, lower, upper, lower);
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
    made->version = make_room_in(spine, rows_of(made->batches)) < 0 ? NULL : version_in(spine);
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
        if (moved_to(trace, shard, upper, rows_of(given->batches)) < 0)
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
        const int done = spine == NULL ? -1 : append_batches(spine, given->batches);
        Py_XDECREF((PyObject *)spine);
        if (done < 0)
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
    const int is_settled =
        spine->_stale == Py_False && (units < 2 || !is_to_join(spine, rows_in(PyList_GetItem(spine->_units, units - 1))));
    Py_DECREF((PyObject *)spine);
    if (is_settled)
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
#define HANDLE_MEMBER(name) MEMBER(Handle, name),
#define MINT_MEMBER(name) MEMBER(Mint, name),

static PyMemberDef trace_members[] = {TRACE_FIELDS(TRACE_MEMBER){NULL, 0, 0, 0, NULL}};
static PyMemberDef handle_members[] = {HANDLE_FIELDS(HANDLE_MEMBER){NULL, 0, 0, 0, NULL}};
static PyMemberDef mint_members[] = {MINT_FIELDS(MINT_MEMBER){NULL, 0, 0, 0, NULL}};

static PyMethodDef trace_methods[] = {{"mint", mint, METH_VARARGS, mint_doc},
                                      {"prepare", prepare, METH_VARARGS, prepare_doc},
                                      {"settle", settle, METH_O, settle_doc},
                                      {"version", version, METH_O, version_doc},
                                      {NULL, NULL, 0, NULL}};
static PyMethodDef handle_methods[] = {{"put", put, METH_VARARGS, put_doc},
                                       {"take", take, METH_O, take_doc},
                                       {"take_before", take_before, METH_VARARGS, take_before_doc},
                                       {"waiting", waiting, METH_NOARGS, waiting_doc},
                                       {NULL, NULL, 0, NULL}};
static PyMethodDef mint_methods[] = {{"apply", apply, METH_NOARGS, apply_doc}, {NULL, NULL, 0, NULL}};
static PyGetSetDef handle_attributes[] = {{"queued", queued, NULL, "The rows of all batches that wait.", NULL},
                                          {NULL, NULL, NULL, NULL, NULL}};

static PyType_Slot trace_slots[] = {SLOTS(trace), {Py_tp_members, trace_members}, {Py_tp_methods, trace_methods}, {0, NULL}};
static PyType_Slot handle_slots[] = {
    SLOTS(handle), {Py_tp_members, handle_members}, {Py_tp_methods, handle_methods}, {Py_tp_getset, handle_attributes}, {0, NULL}};
PyDoc_STRVAR(mint_class_doc, "Batches of one shard that are ready to be minted. `version` is what the shard holds before them, and "
                             "`routed` what of them guarded handles get, if there are some.");
static PyType_Slot mint_slots[] = {
    SLOTS(mint), {Py_tp_doc, (void *)mint_class_doc}, {Py_tp_members, mint_members}, {Py_tp_methods, mint_methods}, {0, NULL}};

int add_trace_types(PyObject *module) {
    const unsigned long record = Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC;
    return ADD(handle_type, "HandleRecord", Handle, record, handle_slots, NULL)
                   && ADD(trace_type, "TraceRecord", Trace, record, trace_slots, NULL)
                   && ADD(mint_type, "Mint", Mint, Py_TPFLAGS_HAVE_GC, mint_slots, NULL)
                   && (no_batches = PyList_New(0)) != NULL && PyModule_AddObjectRef(module, "NO_BATCHES", no_batches) == 0
               ? 0
               : -1;
}
