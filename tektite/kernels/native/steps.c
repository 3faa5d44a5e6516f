/* What closes an epoch of few rows, and what evaluates a reduction of few rows: `small_epoch` and `reduce_few`.

   Both do what a page of Python does elsewhere, without its calls. `small_epoch` looks whether an epoch is simple enough, and says
   None where it is not: then tektite/engine/epochs.py prepares it. The rules are there; this knows the common case of them. */

#include "traces.h"

/* ---- Attributes */

#define NAMES(F)                                                                                                                 \
    F(_checked_batch) F(_checks_batches) F(_parts) F(_width) F(adopted) F(change_number) F(changed) F(changes) F(chunks)         \
    F(defer) F(deliver) F(edges) F(emit) F(epoch) F(handle) F(has_new) F(imported) F(is_closed)                  \
    F(is_simple) F(is_stream) F(is_system) F(key) F(low) F(output) F(own_history) F(params) F(port)         \
    F(reader) F(readers) F(remembers_failures) F(schedule_others) F(scheduled) F(scope) F(shape) F(storage) F(times)             \
    F(todo) F(trace) F(update_shape) F(updates) F(width_of_rows) F(writes)
NAMES(DECLARE_NAME)

static int64_t number_in(PyObject *object, PyObject *name) {
    PyObject *value = PyObject_GetAttr(object, name);
    const int64_t found = value == NULL ? -1 : PyLong_AsLongLong(value);
    Py_XDECREF(value);
    return found;
}

/* ---- Epochs */

#define EPOCH_FIELDS(F) F(core) F(writes) F(changed) F(counts) F(mints) F(others) F(high) F(last) F(epoch) F(changes)
STRUCT(Epoch, EPOCH_FIELDS)
RECORD(epoch, EPOCH_FIELDS)

static PyTypeObject *epoch_type;

/* The sorted, consolidated rows of what waits in an input; None where that is not for here; NULL with an error. */
static PyObject *rows_to_close(PyObject *source, PyObject *pending, int64_t high, PyObject *build) {
    PyObject *found = NULL, *table = NULL, *shape = NULL, *low = NULL, *rows = PyList_New(0);
    PyObject *chunks = rows == NULL ? NULL : GET(pending, chunks);
    const Py_ssize_t count = chunks == NULL ? 0 : PyList_Size(chunks);
    int64_t total = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *chunk = PyTuple_GetItem(PyList_GetItem(chunks, i), 0);
        const int64_t last = PyLong_AsLongLong(PyTuple_GetItem(PyList_GetItem(chunks, i), 1));
        if (chunk == NULL || !PyObject_TypeCheck(chunk, rows_type) || last >= high || (total += ((Rows *)chunk)->n) >= FEW_ROWS) {
            found = PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
            goto end;
        }
        if (PyList_Append(rows, chunk) < 0)
            goto end;
    }
    const int streams = chunks == NULL ? -1 : attribute_is_true(source, n_is_stream);
    if (streams < 0)
        goto end;
    if (streams && count == 1) {
        found = Py_NewRef(PyList_GetItem(rows, 0));
        goto end;
    }
    if ((table = addresses_of(rows)) == NULL || (shape = GET(source, update_shape)) == NULL || (low = GET(source, low)) == NULL)
        goto end;
    found = PyObject_CallFunctionObjArgs(build, table, PyTuple_GetItem(shape, 0), PyTuple_GetItem(shape, 1),
                                         PyTuple_GetItem(shape, 2), low, NULL);
    if (found != NULL && ((Rows *)found)->n < 0) { /* a sum is too large */
        Py_DECREF(found);
        found = Py_NewRef(Py_None);
    }
    if (found == NULL || found == Py_None)
        goto end;
    const int checks = attribute_is_true(source, n__checks_batches);
    if (checks) {
        PyObject *checked = checks < 0 ? NULL : PyObject_CallMethodObjArgs(source, n__checked_batch, found, NULL);
        Py_XDECREF(checked);
        if (checked == NULL)
            Py_CLEAR(found);
    }
end:
    Py_XDECREF(table);
    Py_XDECREF(shape);
    Py_XDECREF(low);
    Py_XDECREF(chunks);
    Py_XDECREF(rows);
    return found;
}

/* Whether an engine is as simple as `small_epoch` needs it. */
static int is_simple(PyObject *core, PyObject *writes) {
    PyObject *const forbidden[] = {n_is_closed, n_storage};
    for (int i = 0; i < 2; i++) {
        const int found = attribute_is_true(core, forbidden[i]);
        if (found)
            return found < 0 ? -1 : 0;
    }
    PyObject *scheduled = GET(core, scheduled);
    const int later = scheduled == NULL ? -1 : attribute_is_true(scheduled, n_updates);
    Py_XDECREF(scheduled);
    const int adopted = later ? 1 : attribute_is_true(writes, n_adopted);
    return later < 0 || adopted < 0 ? -1 : !later && !adopted;
}

/* Notes what closing makes of one input. Returns 1, 0 where that is not for here, or -1 with an error. */
static int add_input(Epoch *epoch, PyObject *source, PyObject *pending, int64_t high, PyObject *build) {
    const int simple = attribute_is_true(source, n_is_simple);
    if (simple <= 0)
        return simple;
    PyObject *rows = rows_to_close(source, pending, high, build);
    if (rows == NULL || rows == Py_None) {
        Py_XDECREF(rows);
        return rows == NULL ? -1 : 0;
    }
    PyObject *mint = NULL, *count = NULL, *trace = NULL, *chunks = NULL, *time = NULL, *upper = NULL;
    int done = -1;
    const int64_t writes = number_in(source, n_writes);
    if (writes < 0)
        goto end;
    if (((Rows *)rows)->n == 0) {
        mint = Py_NewRef(Py_None);
    } else {
        trace = GET(source, trace);
        chunks = PyList_New(1);
        time = PyTuple_Pack(1, epoch->high);
        upper = time == NULL ? NULL : PyTuple_Pack(1, time);
        if (trace == NULL || chunks == NULL || upper == NULL)
            goto end;
        PyList_SetItem(chunks, 0, Py_NewRef(rows));
        mint = prepared_mint(trace, 0, chunks, upper);
    }
    count = PyLong_FromLongLong(writes + (mint != Py_None));
    if (mint == NULL || count == NULL || PyList_Append(epoch->changed, source) < 0 || PyList_Append(epoch->counts, count) < 0
        || PyList_Append(epoch->mints, mint) < 0)
        goto end;
    done = 1;
end:
    Py_XDECREF(mint);
    Py_XDECREF(count);
    Py_XDECREF(trace);
    Py_XDECREF(chunks);
    Py_XDECREF(time);
    Py_XDECREF(upper);
    Py_DECREF(rows);
    return done;
}

PyDoc_STRVAR(small_epoch_doc,
             "small_epoch(core, sources, high, writes, build): everything about closing the epochs before `high` of some inputs that "
             "can fail, as `prepare_epoch` does it; None where that has to. `build` sorts and consolidates rows.");
static PyObject *small_epoch(PyObject *module, PyObject *given) {
    PyObject *core, *sources, *number, *writes, *build, *updates = NULL;
    if (!PyArg_ParseTuple(given, "OO!OOO", &core, &PyList_Type, &sources, &number, &writes, &build))
        return NULL;
    const int64_t high = PyLong_AsLongLong(number);
    const int simple = high == -1 && PyErr_Occurred() ? -1 : is_simple(core, writes);
    if (simple <= 0)
        return simple < 0 ? NULL : Py_NewRef(Py_None);
    Epoch *epoch = (Epoch *)PyType_GenericAlloc(epoch_type, 0);
    if (epoch == NULL)
        return NULL;
    const int64_t open = number_in(core, n_epoch), changes = number_in(core, n_changes);
    epoch->core = Py_NewRef(core);
    epoch->writes = Py_NewRef(writes);
    epoch->high = Py_NewRef(number);
    epoch->last = PyLong_FromLongLong(high - 1);
    epoch->epoch = PyLong_FromLongLong(open > high ? open : high);
    epoch->changes = PyLong_FromLongLong(changes + 1);
    epoch->changed = PyList_New(0);
    epoch->counts = PyList_New(0);
    epoch->mints = PyList_New(0);
    epoch->others = PyList_New(0);
    int fits = -1;
    if (open < 0 || changes < 0 || !epoch->last || !epoch->epoch || !epoch->changes || !epoch->changed || !epoch->counts
        || !epoch->mints || !epoch->others || (updates = GET(writes, updates)) == NULL || !PyDict_Check(updates))
        goto end;
    fits = 1;
    for (Py_ssize_t i = 0; fits > 0 && i < PyList_Size(sources); i++) {
        PyObject *source = PyList_GetItem(sources, i);
        PyObject *pending = PyDict_GetItemWithError(updates, source);
        if (pending != NULL)
            fits = add_input(epoch, source, pending, high, build);
        else if (PyErr_Occurred() || PyList_Append(epoch->others, source) < 0)
            fits = -1;
    }
    if (fits > 0 && PyList_Size(epoch->changed) != PyDict_Size(updates))
        fits = 0; /* some of it stays */
end:
    Py_XDECREF(updates);
    if (fits > 0)
        return (PyObject *)epoch;
    Py_DECREF((PyObject *)epoch);
    return fits < 0 ? NULL : Py_NewRef(Py_None);
}

PyDoc_STRVAR(apply_epoch_doc, "apply(): close the epochs. May be repeated.");
static PyObject *apply_epoch(PyObject *self, PyObject *unused) {
    Epoch *epoch = (Epoch *)self;
    for (Py_ssize_t i = 0, count = PyList_Size(epoch->changed); i < count; i++) {
        PyObject *source = PyList_GetItem(epoch->changed, i), *mint = PyList_GetItem(epoch->mints, i);
        if ((mint != Py_None && applied_mint(mint) < 0) || SET(source, writes, PyList_GetItem(epoch->counts, i)) < 0)
            return NULL;
        if (mint != Py_None && (SET(source, changed, epoch->last) < 0 || SET(source, change_number, epoch->changes) < 0))
            return NULL;
        if (SET(source, low, epoch->high) < 0)
            return NULL;
    }
    for (Py_ssize_t i = 0, count = PyList_Size(epoch->others); i < count; i++)
        if (SET(PyList_GetItem(epoch->others, i), low, epoch->high) < 0)
            return NULL;
    PyObject *left = PyDict_New();
    const int failed = left == NULL || SET(epoch->writes, updates, left) < 0 || SET(epoch->core, epoch, epoch->epoch) < 0
                       || SET(epoch->core, changes, epoch->changes) < 0;
    Py_XDECREF(left);
    return failed ? NULL : Py_NewRef(Py_None);
}

PyDoc_STRVAR(settle_epoch_doc, "settle(): do the merging that new batches pay for.");
static PyObject *settle_epoch(PyObject *self, PyObject *unused) {
    PyObject *mints = ((Epoch *)self)->mints;
    for (Py_ssize_t i = 0, count = PyList_Size(mints); i < count; i++)
        if (PyList_GetItem(mints, i) != Py_None && settled_mint(PyList_GetItem(mints, i)) < 0)
            return NULL;
    Py_RETURN_NONE;
}

static PyObject *epoch_rows(PyObject *self, void *unused) {
    Epoch *epoch = (Epoch *)self;
    int64_t rows = 0;
    for (Py_ssize_t i = 0, count = PyList_Size(epoch->changed); i < count; i++) {
        PyObject *mint = PyList_GetItem(epoch->mints, i);
        const int system = attribute_is_true(PyList_GetItem(epoch->changed, i), n_is_system);
        if (system < 0)
            return NULL;
        if (!system && mint != Py_None)
            rows += rows_of_mint(mint);
    }
    return PyLong_FromLongLong(rows);
}

/* ---- Reductions */

/* The addresses of changes and of deferred keys, and how wide their rows are. */
static int work_of(PyObject *node, PyObject *delta, PyObject *todo, PyObject **work, PyObject **widths) {
    const Py_ssize_t changes = PyTuple_Size(delta), keys = todo == NULL ? 0 : PyList_Size(todo);
    PyObject *more = keys ? PyList_AsTuple(todo) : NULL;
    PyObject *all = keys ? (more == NULL ? NULL : PySequence_Concat(delta, more)) : Py_NewRef(delta);
    Py_XDECREF(more);
    *work = all == NULL ? NULL : addresses_of(all);
    Py_XDECREF(all);
    if (*work == NULL)
        return -1;
    if (changes == 1 && keys == 0) {
        *widths = GET(node, _width);
        return *widths == NULL ? -1 : 0;
    }
    const int64_t width = number_in(node, n_width_of_rows), key = number_in(node, n_key);
    int64_t *words = NULL;
    *widths = width < 0 || key < 0 ? NULL : new_words(changes + keys, &words);
    if (*widths == NULL)
        return -1;
    for (Py_ssize_t i = 0; i < changes + keys; i++)
        words[i] = i < changes ? width : key;
    return 0;
}

/* Takes the keys out that were deferred to a moment. A new reference, or NULL; then there are none, or there is an error. */
static PyObject *deferred_keys(PyObject *node, Py_ssize_t shard, PyObject *moment) {
    PyObject *todo = GET(node, todo), *parts = todo == NULL ? NULL : GET(todo, _parts);
    PyObject *waiting = parts == NULL ? NULL : element(parts, shard), *found = NULL;
    if (waiting != NULL && (found = Py_XNewRef(PyDict_GetItemWithError(waiting, moment))) != NULL
        && PyDict_DelItem(waiting, moment) < 0)
        Py_CLEAR(found);
    Py_XDECREF(parts);
    Py_XDECREF(todo);
    return found;
}

/* Appends what has changed to the output, and sends it to readers. */
static int deliver(PyObject *node, Py_ssize_t shard, PyObject *result, PyObject *moment, PyObject *high, PyObject *outbox) {
    if (((Rows *)result)->n > FEW_ROWS) {
        PyObject *sent = PyObject_CallMethod(node, "_deliver", "nOOO", shard, result, moment, outbox);
        Py_XDECREF(sent);
        return sent == NULL ? -1 : 0;
    }
    PyObject *output = GET(node, output), *trace = output == NULL ? NULL : GET(output, trace), *port = GET(node, port);
    PyObject *edges = port == NULL ? NULL : GET(port, edges), *scope = GET(node, scope);
    PyObject *upper = scope == NULL ? NULL : passed_upper(scope, moment, high);
    int done = -1;
    if (trace == NULL || edges == NULL || upper == NULL || minted_rows(trace, shard, result, upper) < 0)
        goto end;
    done = 0;
    if (PyTuple_Size(edges)) {
        PyObject *times = GET(node, times), *number = PyLong_FromSsize_t(shard);
        PyObject *sent = times == NULL || number == NULL
                             ? NULL
                             : PyObject_CallMethodObjArgs(port, n_emit, number, result, moment, times, outbox, NULL);
        done = sent == NULL ? -1 : 0;
        Py_XDECREF(times);
        Py_XDECREF(number);
        Py_XDECREF(sent);
    }
end:
    Py_XDECREF(output);
    Py_XDECREF(trace);
    Py_XDECREF(port);
    Py_XDECREF(edges);
    Py_XDECREF(scope);
    Py_XDECREF(upper);
    return done;
}

/* Evaluates few rows that wait for a reduction at a moment. */
static int reduce_shard(PyObject *node, Py_ssize_t shard, PyObject *moment, PyObject *outbox, PyObject *kernel, PyObject *rounds) {
    PyObject *flow = flow_of(node), *reader = GET(node, reader), *high = NULL, *reached = NULL, *handle = NULL, *taken = NULL;
    PyObject *keys = NULL, *past = NULL, *work = NULL, *widths = NULL, *shape = NULL, *params = NULL, *at = NULL, *found = NULL;
    int done = -1;
    if (flow == NULL || reader == NULL || (high = FIELD(flow, high)) == NULL || (reached = FIELD(flow, reached)) == NULL
        || (handle = GET(reader, handle)) == NULL)
        goto end;
    const int imported = attribute_is_true(reader, n_imported), own = attribute_is_true(node, n_own_history);
    if (imported < 0 || own < 0 || (taken = taken_rows(handle, shard, imported ? PyLong_AsLongLong(high) : INT64_MAX)) == NULL)
        goto end;
    keys = deferred_keys(node, shard, moment);
    if (keys == NULL && PyErr_Occurred())
        goto end;
    PyObject *old = PyTuple_GetItem(taken, 0), *delta = PyTuple_GetItem(taken, 1), *new = PyTuple_GetItem(taken, 2);
    if (PyTuple_Size(delta) == 0 && (keys == NULL || PyList_Size(keys) == 0)) {
        done = 0;
        goto end;
    }
    if (own) {
        PyObject *output = GET(node, output), *trace = output == NULL ? NULL : GET(output, trace);
        past = trace == NULL ? NULL : version_of_trace(trace, shard);
        Py_XDECREF(output);
        Py_XDECREF(trace);
    } else {
        past = Py_NewRef(old);
    }
    if (past == NULL || work_of(node, delta, keys, &work, &widths) < 0 || (shape = GET(node, shape)) == NULL
        || (params = GET(node, params)) == NULL || (at = PyObject_CallFunctionObjArgs(rounds, moment, NULL)) == NULL)
        goto end;
    found = PyObject_CallFunctionObjArgs(kernel, work, widths, table_of(new), table_of(past), shape, params, at, reached, high, NULL);
    if (found == NULL)
        goto end;
    PyObject *result = PyTuple_GetItem(found, 0), *todo = PyTuple_GetItem(found, 1);
    const int remembers = attribute_is_true(node, n_remembers_failures);
    if (remembers < 0)
        goto end;
    if (remembers || first_word(PyTuple_GetItem(found, 2)) != 0) {
        PyObject *settled = PyObject_CallMethod(node, "settled_rows", "nOOOOO", shard, taken, keys ? keys : Py_None, at, found, outbox);
        Py_XDECREF(settled);
        if (settled == NULL)
            goto end;
    } else if (((Rows *)todo)->n) {
        PyObject *number = PyLong_FromSsize_t(shard);
        PyObject *deferred = number == NULL ? NULL : PyObject_CallMethodObjArgs(node, n_defer, number, todo, NULL);
        Py_XDECREF(number);
        Py_XDECREF(deferred);
        if (deferred == NULL)
            goto end;
    }
    if (((Rows *)result)->n == 0 || deliver(node, shard, result, moment, high, outbox) == 0)
        done = 0;
end:
    Py_XDECREF(flow);
    Py_XDECREF(reader);
    Py_XDECREF(high);
    Py_XDECREF(reached);
    Py_XDECREF(handle);
    Py_XDECREF(taken);
    Py_XDECREF(keys);
    Py_XDECREF(past);
    Py_XDECREF(work);
    Py_XDECREF(widths);
    Py_XDECREF(shape);
    Py_XDECREF(params);
    Py_XDECREF(at);
    Py_XDECREF(found);
    return done;
}

/* The rows that wait for a reduction of one shard at a moment; more than `FEW_ROWS` if there are several shards. */
static int64_t waiting_rows(PyObject *node, PyObject *moment) {
    PyObject *reader = GET(node, reader), *handle = reader == NULL ? NULL : GET(reader, handle);
    PyObject *todo = GET(node, todo), *parts = todo == NULL ? NULL : GET(todo, _parts);
    int64_t rows = handle == NULL || parts == NULL ? -1 : PyObject_Size(parts) == 1 ? rows_waiting(handle) : FEW_ROWS + 1;
    if (rows >= 0 && rows <= FEW_ROWS) {
        PyObject *keys = PyDict_GetItemWithError(element(parts, 0), moment);
        if (keys != NULL)
            rows += rows_of(keys);
        else if (PyErr_Occurred())
            rows = -1;
    }
    Py_XDECREF(reader);
    Py_XDECREF(handle);
    Py_XDECREF(todo);
    Py_XDECREF(parts);
    return rows;
}

/* Calls a method unless what it is about is empty. */
static int follow_up(PyObject *node, PyObject *name, PyObject *argument, int is_needed) {
    PyObject *done = !is_needed ? Py_NewRef(Py_None) : is_needed < 0 ? NULL : PyObject_CallMethodObjArgs(node, name, argument, NULL);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

PyDoc_STRVAR(reduce_few_doc,
             "reduce_few(node, moment, kernel, rounds): run a reduction at a moment: take what waits, run the kernel, append what "
             "changes to the output and send it on. Keys that are deferred, and sums that do not fit, are left to the node's `defer` "
             "and `settled_rows`. False, and nothing has happened, where there are several shards or many rows.");
static PyObject *reduce_few(PyObject *module, PyObject *given) {
    PyObject *node, *moment, *kernel, *rounds;
    if (!PyArg_ParseTuple(given, "OO!OO", &node, &PyTuple_Type, &moment, &kernel, &rounds))
        return NULL;
    const int64_t rows = waiting_rows(node, moment);
    if (rows < 0 || rows > FEW_ROWS)
        return rows < 0 ? NULL : Py_NewRef(Py_False);
    PyObject *outbox = PyList_New(0), *outboxes = outbox == NULL ? NULL : PyList_New(1), *todo = NULL, *output = NULL, *done = NULL;
    if (outboxes != NULL)
        PyList_SetItem(outboxes, 0, Py_NewRef(outbox));
    if (outboxes == NULL || reduce_shard(node, 0, moment, outbox, kernel, rounds) < 0
        || follow_up(node, n_deliver, outboxes, PyList_Size(outbox) > 0) < 0 || (todo = GET(node, todo)) == NULL
        || (output = GET(node, output)) == NULL)
        goto end;
    int is_needed = attribute_is_true(todo, n_has_new);
    if (is_needed == 0)
        is_needed = attribute_is_true(output, n_readers);
    if (follow_up(node, n_schedule_others, moment, is_needed) == 0)
        done = Py_NewRef(Py_True);
end:
    Py_XDECREF(outbox);
    Py_XDECREF(outboxes);
    Py_XDECREF(todo);
    Py_XDECREF(output);
    return done;
}

/* ---- Types */

static PyMemberDef epoch_members[] = {{"changed", T_OBJECT_EX, offsetof(Epoch, changed), READONLY, "Inputs with updates."},
                                      {NULL, 0, 0, 0, NULL}};
static PyMethodDef epoch_methods[] = {{"apply", apply_epoch, METH_NOARGS, apply_epoch_doc},
                                      {"settle", settle_epoch, METH_NOARGS, settle_epoch_doc},
                                      {NULL, NULL, 0, NULL}};
static PyGetSetDef epoch_attributes[] = {
    {"rows", epoch_rows, NULL, "How many changes it has of tables that are not system relations.", NULL}, {NULL, NULL, NULL, NULL, NULL}};
PyDoc_STRVAR(epoch_doc, "What closing an epoch of few rows does to inputs, write set and clock. A `Decision`.");
static PyType_Slot epoch_slots[] = {SLOTS(epoch),
                                    {Py_tp_doc, (void *)epoch_doc},
                                    {Py_tp_members, epoch_members},
                                    {Py_tp_methods, epoch_methods},
                                    {Py_tp_getset, epoch_attributes},
                                    {0, NULL}};

static PyMethodDef step_functions[] = {{"small_epoch", small_epoch, METH_VARARGS, small_epoch_doc},
                                       {"reduce_few", reduce_few, METH_VARARGS, reduce_few_doc},
                                       {NULL, NULL, 0, NULL}};

int add_steps(PyObject *module) {
    NAMES(INTERN)
    epoch_type = add_type(module, "SmallEpoch", "tektite.kernels.call.SmallEpoch", sizeof(Epoch), Py_TPFLAGS_HAVE_GC, epoch_slots, NULL);
    if (epoch_type == NULL)
        return -1;
    return PyModule_AddFunctions(module, step_functions);
}
