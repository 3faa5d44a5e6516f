/* What nodes of a dataflow do with few rows: `Buffering.add`, `Arranging.receive` and `.run`, and `Joining.run`, which `Buffer`,
   `ArrangeNode` and `JoinNode` of tektite/dataflow inherit. A run of many rows, or on several shards, is left to the method `_run`
   of the class, before anything has happened. */

#include "traces.h"

#include <string.h>

#define NAMES(F)                                                                                                                 \
    F(_build) F(_by_moment) F(_count) F(_join) F(_new) F(_raw) F(_run) F(_waiting) F(arranged) F(buffer) F(data) F(deliver)      \
    F(emit) F(flags) F(go_on) F(handle) F(imported) F(key) F(lift) F(node) F(passed) F(piece) F(port) F(position) F(readers)     \
    F(receive) F(refuse) F(scope) F(shape) F(shards) F(specs) F(state_words) F(take) F(tasks) F(times) F(trace) F(wake) F(work)
NAMES(DECLARE_NAME)

/* Rows of a chunk, and chunks of a place, from which on a buffer counts what it receives. */
enum { MANY_ROWS = 4096, MANY_CHUNKS = 64 };

static PyTypeObject *buffering_type;

/* ---- Buffers */

static int add_to_buffer(PyObject *buffer, PyObject *shard, PyObject *chunk, PyObject *moment) {
    PyObject *waiting = GET(buffer, _waiting), *places = NULL, *chunks = NULL;
    int done = -1;
    if (waiting == NULL || !PyDict_Check(waiting))
        goto end;
    if ((places = Py_XNewRef(PyDict_GetItemWithError(waiting, moment))) == NULL
        && (PyErr_Occurred() || (places = PyObject_CallMethodObjArgs(buffer, n__new, moment, NULL)) == NULL))
        goto end;
    const Py_ssize_t at = PyLong_AsSsize_t(shard);
    chunks = at == -1 && PyErr_Occurred() ? NULL : Py_XNewRef(element(places, at));
    if (chunks == NULL || PyList_Append(chunks, chunk) < 0)
        goto end;
    done = 0;
    if (PyObject_TypeCheck(chunk, rows_type) ? ((Rows *)chunk)->n > MANY_ROWS || PyList_Size(chunks) > MANY_CHUNKS : 1) {
        PyObject *counted = PyObject_CallMethodObjArgs(buffer, n__count, shard, chunk, moment, NULL);
        done = counted == NULL ? -1 : 0;
        Py_XDECREF(counted);
    }
end:
    Py_XDECREF(waiting);
    Py_XDECREF(places);
    Py_XDECREF(chunks);
    return done;
}

PyDoc_STRVAR(add_doc, "add(shard, chunk, moment): add a chunk. Many rows and many chunks are counted, by `_count`.");
static PyObject *add(PyObject *self, PyObject *given) {
    PyObject *shard, *chunk, *moment;
    if (!PyArg_ParseTuple(given, "OOO!", &shard, &chunk, &PyTuple_Type, &moment) || add_to_buffer(self, shard, chunk, moment) < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* ---- Scheduling */

/* Schedules a node at a moment. */
static int schedule_node(PyObject *node, PyObject *moment) {
    PyObject *scope = GET(node, scope), *position = GET(node, position);
    const int done = scope == NULL || position == NULL ? -1 : schedule_in(scope, position, moment);
    Py_XDECREF(scope);
    Py_XDECREF(position);
    return done;
}

int wake_reader(PyObject *reader, PyObject *moment) {
    PyObject *handle = GET(reader, handle);
    const int lifts = handle == NULL ? -1 : attribute_is_true(reader, n_lift);
    int done = lifts < 0 ? -1 : 0;
    if (lifts > 0) {
        PyObject *woken = PyObject_CallMethodObjArgs(reader, n_wake, moment, NULL);
        done = woken == NULL ? -1 : 0;
        Py_XDECREF(woken);
    } else if (lifts == 0 && has_batches(handle)) {
        PyObject *node = GET(reader, node);
        done = node == NULL ? -1 : schedule_node(node, moment);
        Py_XDECREF(node);
    }
    Py_XDECREF(handle);
    return done;
}

static int wake_readers(PyObject *arranged, PyObject *moment) {
    PyObject *readers = GET(arranged, readers);
    int done = readers == NULL || !PyTuple_Check(readers) ? -1 : 0;
    for (Py_ssize_t i = 0; done == 0 && i < PyTuple_Size(readers); i++)
        done = wake_reader(PyTuple_GetItem(readers, i), moment);
    Py_XDECREF(readers);
    return done;
}

PyObject *passed_upper(PyObject *scope, PyObject *moment, PyObject *high) {
    if (PyTuple_Size(moment))
        return PyObject_CallMethodObjArgs(scope, n_passed, NULL);
    PyObject *time = PyTuple_Pack(1, high), *upper = time == NULL ? NULL : PyTuple_Pack(1, time);
    Py_XDECREF(time);
    return upper;
}

/* ---- Arranging */

PyDoc_STRVAR(receive_doc, "receive(shard, chunk, moment): buffer a chunk and schedule the node.");
static PyObject *receive(PyObject *self, PyObject *given) {
    PyObject *shard, *chunk, *moment;
    if (!PyArg_ParseTuple(given, "OOO!", &shard, &chunk, &PyTuple_Type, &moment))
        return NULL;
    PyObject *buffer = GET(self, buffer);
    const int done = buffer == NULL || add_to_buffer(buffer, shard, chunk, moment) < 0 ? -1 : schedule_node(self, moment);
    Py_XDECREF(buffer);
    return done < 0 ? NULL : Py_NewRef(Py_None);
}

/* The chunks of the only shard that wait for a moment, if they are few rows: a new reference. NULL without an error if they are many, or
   for several shards; None if there are none. */
static PyObject *few_waiting(PyObject *buffer, PyObject *moment) {
    PyObject *waiting = GET(buffer, _waiting), *counted = GET(buffer, _raw), *found = NULL;
    if (waiting == NULL || counted == NULL || !PyDict_Check(waiting) || !PyDict_Check(counted) || PyDict_Size(counted))
        goto end;
    PyObject *places = PyDict_GetItemWithError(waiting, moment);
    if (places == NULL) {
        found = PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
        goto end;
    }
    if (!PyList_Check(places) || PyList_Size(places) != 1)
        goto end;
    PyObject *chunks = PyList_GetItem(places, 0);
    int64_t rows = 0;
    for (Py_ssize_t i = 0, count = PyList_Size(chunks); i < count && rows <= FEW_ROWS; i++) {
        PyObject *chunk = PyList_GetItem(chunks, i);
        rows += PyObject_TypeCheck(chunk, rows_type) ? ((Rows *)chunk)->n : FEW_ROWS + 1;
    }
    if (rows <= FEW_ROWS)
        found = Py_NewRef(chunks);
end:
    Py_XDECREF(waiting);
    Py_XDECREF(counted);
    return found;
}

/* The rows of some chunks, sorted and consolidated. */
static PyObject *built_rows(PyObject *node, PyObject *buffer, PyObject *chunks, PyObject *low) {
    PyObject *table = addresses_of(chunks), *shape = table == NULL ? NULL : GET(buffer, shape);
    PyObject *build = shape == NULL ? NULL : GET(node, _build);
    PyObject *found = build == NULL ? NULL
                                    : PyObject_CallFunctionObjArgs(build, table, PyTuple_GetItem(shape, 0), PyTuple_GetItem(shape, 1),
                                                                   PyTuple_GetItem(shape, 2), low, NULL);
    Py_XDECREF(table);
    Py_XDECREF(shape);
    Py_XDECREF(build);
    return found;
}

/* Sorts what waits for a moment and appends it to the trace: 1, 0 where it is not for here, or -1 with an error. */
static int arrange_few(PyObject *node, PyObject *moment) {
    PyObject *buffer = GET(node, buffer), *chunks = buffer == NULL ? NULL : few_waiting(buffer, moment);
    PyObject *flow = NULL, *low = NULL, *high = NULL, *rows = NULL, *arranged = NULL, *trace = NULL, *scope = NULL, *upper = NULL, *taken = NULL;
    int done = -1;
    if (chunks == NULL || chunks == Py_None) {
        done = chunks != NULL ? 1 : PyErr_Occurred() ? -1 : 0;
        goto end;
    }
    if ((flow = flow_of(node)) == NULL || (low = FIELD(flow, reached)) == NULL || (high = FIELD(flow, high)) == NULL
        || (rows = built_rows(node, buffer, chunks, low)) == NULL || (arranged = GET(node, arranged)) == NULL
        || (trace = GET(arranged, trace)) == NULL || (scope = GET(node, scope)) == NULL)
        goto end;
    if (((Rows *)rows)->n < 0) { /* a sum is too large */
        done = 0;
        goto end;
    }
    if ((upper = passed_upper(scope, moment, high)) == NULL || (taken = PyObject_CallMethodObjArgs(buffer, n_take, moment, NULL)) == NULL
        || (((Rows *)rows)->n && minted_rows(trace, 0, rows, upper) < 0))
        goto end;
    done = wake_readers(arranged, moment) < 0 ? -1 : 1;
end:
    Py_XDECREF(buffer);
    Py_XDECREF(chunks);
    Py_XDECREF(flow);
    Py_XDECREF(low);
    Py_XDECREF(high);
    Py_XDECREF(rows);
    Py_XDECREF(arranged);
    Py_XDECREF(trace);
    Py_XDECREF(scope);
    Py_XDECREF(upper);
    Py_XDECREF(taken);
    return done;
}

/* What a run has come to: if it is not for here, the class's own. */
static PyObject *run_otherwise(PyObject *node, PyObject *moment, int done) {
    return done < 0 ? NULL : done ? Py_NewRef(Py_None) : PyObject_CallMethodObjArgs(node, n__run, moment, NULL);
}

PyDoc_STRVAR(arrange_doc, "run(moment): sort what waits at a moment, append it to the trace as a batch, and wake its readers.");
static PyObject *run_arrange(PyObject *self, PyObject *moment) {
    if (!PyTuple_Check(moment)) {
        PyErr_SetString(PyExc_TypeError, "a moment is a tuple");
        return NULL;
    }
    return run_otherwise(self, moment, arrange_few(self, moment));
}

/* ---- Joining */

/* Calls a method with arguments of a tuple. */
static int tell(PyObject *object, PyObject *name, PyObject *arguments) {
    PyObject *method = arguments == NULL ? NULL : PyObject_GetAttr(object, name);
    PyObject *done = method == NULL ? NULL : PyObject_CallObject(method, arguments);
    Py_XDECREF(method);
    Py_XDECREF(arguments);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

/* Sends rows of several rounds through a port. */
static int emit_rows(PyObject *node, PyObject *rows, PyObject *outbox) {
    PyObject *port = GET(node, port), *times = GET(node, times), *data = GET(node, data), *moment = NULL;
    int done = -1;
    const int64_t columns = times == NULL ? -1 : PyLong_AsLongLong(times), width = data == NULL ? -1 : PyLong_AsLongLong(data);
    if (port == NULL || columns < 0 || width < 0 || (moment = constants_of((Rows *)rows, width + 1, columns - 1)) == NULL)
        goto end;
    if (moment == Py_None) {
        PyObject *by_moment = GET(node, _by_moment);
        PyObject *sent = by_moment == NULL ? NULL : PyObject_CallFunction(by_moment, "OiOOOO", port, 0, rows, data, times, outbox);
        done = sent == NULL ? -1 : 0;
        Py_XDECREF(by_moment);
        Py_XDECREF(sent);
    } else {
        done = tell(port, n_emit, Py_BuildValue("(iOOOO)", 0, rows, moment, times, outbox));
    }
end:
    Py_XDECREF(port);
    Py_XDECREF(times);
    Py_XDECREF(data);
    Py_XDECREF(moment);
    return done;
}

/* Gives nodes what a run emitted. */
static int deliver_outbox(PyObject *node, PyObject *flow, PyObject *outbox) {
    if (PyList_Size(outbox) == 0)
        return 0;
    PyObject *journal = FIELD(flow, journal);
    const int counts = journal == NULL ? -1 : journal == Py_None ? 0 : attribute_is_set(journal, n_work);
    Py_XDECREF(journal);
    if (counts)
        return counts < 0 ? -1 : tell(node, n_deliver, Py_BuildValue("([O])", outbox));
    for (Py_ssize_t i = 0; i < PyList_Size(outbox); i++) {
        PyObject *each = PyList_GetItem(outbox, i);
        PyObject *received = PyObject_CallMethodObjArgs(PyTuple_GetItem(each, 0), n_receive, PyTuple_GetItem(each, 1),
                                                        PyTuple_GetItem(each, 2), PyTuple_GetItem(each, 3), NULL);
        Py_XDECREF(received);
        if (received == NULL)
            return -1;
    }
    PyObject *buffers = FIELD(flow, full_buffers);
    const int full = buffers == NULL ? -1 : PyObject_IsTrue(buffers);
    Py_XDECREF(buffers);
    return full <= 0 ? full : tell(node, n_deliver, Py_BuildValue("([])"));
}

/* Takes what waits for one reader of a join. */
static PyObject *taken_by(PyObject *reader, PyObject *handle, PyObject *high) {
    const int imported = attribute_is_true(reader, n_imported);
    return imported < 0 ? NULL : taken_rows(handle, 0, imported ? PyLong_AsLongLong(high) : INT64_MAX);
}

/* The pairs of the rows that are new on a side with the other side's version. What is more than one piece goes on later. */
static int join_side(PyObject *node, int side, PyObject *delta, PyObject *version, PyObject *const *traces, PyObject *low,
                     PyObject *outbox) {
    if (PyTuple_Size(delta) == 0 || PyTuple_Size(((Version *)version)->batches) == 0)
        return 0;
    Trace *near = (Trace *)traces[side], *far = (Trace *)traces[1 - side];
    int64_t *words = NULL;
    PyObject *kernel = GET(node, _join), *key = GET(node, key), *times = GET(node, times), *specs = GET(node, specs);
    PyObject *piece = GET(node, piece), *flags = GET(node, flags), *table = addresses_of(delta), *found = NULL;
    PyObject *length = GET(node, state_words);
    const Py_ssize_t number = length == NULL ? -1 : PyLong_AsSsize_t(length);
    PyObject *state = number < 0 ? NULL : new_words(number, &words);
    int done = -1;
    if (kernel == NULL || key == NULL || times == NULL || specs == NULL || piece == NULL || flags == NULL || table == NULL
        || state == NULL)
        goto end;
    memset(words, 0, number * sizeof(int64_t));
    found = PyObject_CallFunctionObjArgs(kernel, table, table_of(version), key, near->data, far->data, near->times, far->times, times,
                                         PyTuple_GetItem(specs, side), low, piece, flags, state, NULL);
    if (found == NULL)
        goto end;
    if (((Rows *)found)->n < 0) {
        tell(node, n_refuse, PyTuple_New(0));
        goto end;
    }
    if (words[0] != 1 && tell(node, n_go_on, Py_BuildValue("(iOOO)", side, delta, version, state)) < 0)
        goto end;
    done = ((Rows *)found)->n ? emit_rows(node, found, outbox) : 0;
end:
    Py_XDECREF(kernel);
    Py_XDECREF(key);
    Py_XDECREF(times);
    Py_XDECREF(specs);
    Py_XDECREF(piece);
    Py_XDECREF(flags);
    Py_XDECREF(table);
    Py_XDECREF(length);
    Py_XDECREF(state);
    Py_XDECREF(found);
    return done;
}

/* Whether the only shard of a trace has no batch; -1 with an error. */
static int keeps_nothing(PyObject *trace) {
    PyObject *version = version_of_trace(trace, 0);
    const int found = version == NULL ? -1 : PyTuple_Size(((Version *)version)->batches) == 0;
    Py_XDECREF(version);
    return found;
}

/* Joins the few rows that wait: 1, 0 where that is not for here, or -1 with an error. */
static int join_few(PyObject *node, PyObject *moment) {
    PyObject *tasks = GET(node, tasks), *readers = GET(node, readers), *flow = flow_of(node), *shards = GET(node, shards);
    PyObject *high = NULL, *low = NULL, *outbox = NULL;
    PyObject *handles[2] = {NULL, NULL}, *taken[2] = {NULL, NULL}, *traces[2] = {NULL, NULL};
    int done = -1;
    if (tasks == NULL || shards == NULL || readers == NULL || flow == NULL || !PyTuple_Check(readers) || PyTuple_Size(readers) != 2)
        goto end;
    if (PyObject_Size(tasks) != 0 || PyLong_AsLong(shards) != 1) {
        done = PyErr_Occurred() ? -1 : 0;
        goto end;
    }
    int64_t rows = 0;
    int is_empty = 0; /* whether a side has no rows, so that those of the other one meet nothing, however many they are */
    for (int side = 0; side < 2; side++) {
        PyObject *reader = PyTuple_GetItem(readers, side);
        if ((handles[side] = GET(reader, handle)) == NULL || (traces[side] = GET(reader, trace)) == NULL)
            goto end;
        rows += rows_waiting(handles[side]);
        const int nothing_here = has_batches(handles[side]) ? 0 : keeps_nothing(traces[side]);
        if (nothing_here < 0)
            goto end;
        is_empty |= nothing_here;
    }
    if (rows > FEW_ROWS && !is_empty) {
        done = 0;
        goto end;
    }
    if ((high = FIELD(flow, high)) == NULL || (low = FIELD(flow, reached)) == NULL || (outbox = PyList_New(0)) == NULL)
        goto end;
    for (int side = 0; side < 2; side++)
        if ((taken[side] = taken_by(PyTuple_GetItem(readers, side), handles[side], high)) == NULL)
            goto end;
    /* new rows of the left side meet what the right one was, and new rows of the right side what the left one is */
    if (join_side(node, 0, PyTuple_GetItem(taken[0], 1), PyTuple_GetItem(taken[1], 0), traces, low, outbox) < 0
        || join_side(node, 1, PyTuple_GetItem(taken[1], 1), PyTuple_GetItem(taken[0], 2), traces, low, outbox) < 0
        || deliver_outbox(node, flow, outbox) < 0)
        goto end;
    Py_DECREF(tasks);
    tasks = GET(node, tasks); /* what is left of the join */
    const Py_ssize_t left = tasks == NULL ? -1 : PyObject_Size(tasks);
    done = left < 0 || (left > 0 && schedule_node(node, moment) < 0) ? -1 : 1;
end:
    Py_XDECREF(tasks);
    Py_XDECREF(shards);
    Py_XDECREF(readers);
    Py_XDECREF(flow);
    Py_XDECREF(high);
    Py_XDECREF(low);
    Py_XDECREF(outbox);
    for (int side = 0; side < 2; side++) {
        Py_XDECREF(handles[side]);
        Py_XDECREF(traces[side]);
        Py_XDECREF(taken[side]);
    }
    return done;
}

PyDoc_STRVAR(join_doc, "run(moment): join what is new on each side with the other side, and send the pairs on.");
static PyObject *run_join(PyObject *self, PyObject *moment) {
    if (!PyTuple_Check(moment)) {
        PyErr_SetString(PyExc_TypeError, "a moment is a tuple");
        return NULL;
    }
    return run_otherwise(self, moment, join_few(self, moment));
}

/* ---- Types */

static PyMethodDef buffering_methods[] = {{"add", add, METH_VARARGS, add_doc}, {NULL, NULL, 0, NULL}};
static PyMethodDef arranging_methods[] = {
    {"receive", receive, METH_VARARGS, receive_doc}, {"run", run_arrange, METH_O, arrange_doc}, {NULL, NULL, 0, NULL}};
static PyMethodDef joining_methods[] = {{"run", run_join, METH_O, join_doc}, {NULL, NULL, 0, NULL}};
static PyType_Slot buffering_slots[] = {{Py_tp_methods, buffering_methods}, {0, NULL}};
static PyType_Slot arranging_slots[] = {{Py_tp_methods, arranging_methods}, {0, NULL}};
static PyType_Slot joining_slots[] = {{Py_tp_methods, joining_methods}, {0, NULL}};

int add_nodes(PyObject *module) {
    NAMES(INTERN)
    PyTypeObject *arranging, *joining;
    return ADD(buffering_type, "Buffering", PyObject, Py_TPFLAGS_BASETYPE, buffering_slots, NULL)
                   && ADD(arranging, "Arranging", PyObject, Py_TPFLAGS_BASETYPE, arranging_slots, NULL)
                   && ADD(joining, "Joining", PyObject, Py_TPFLAGS_BASETYPE, joining_slots, NULL)
               ? 0
               : -1;
}
