/* The agenda of a scope, which says what runs next: what `Scope` of tektite/dataflow/graph.py inherits, and `run_agenda`. And `sweep`,
   which begins a sweep, runs the agenda and ends the sweep, where nothing about it is rare; tektite/dataflow/flow.py does the others.

   `_agenda` has the positions of the nodes that wait, by moment, each list a heap; `_moments` is a heap of its keys. */

#include "traces.h"

#define SCOPE_FIELDS(F)                                                                                                          \
    F(_agenda) F(_counted) F(_moments) F(_passed) F(_running) F(advice) F(body) F(depth) F(flow) F(last_rounds) F(limit)         \
    F(moment) F(name) F(parent) F(position) F(rounds)
STRUCT(Scope, SCOPE_FIELDS)
RECORD(scope, SCOPE_FIELDS)
RECORD(flow, FLOW_FIELDS)
RECORD(journal, JOURNAL_FIELDS)
RECORD(sweep, SWEEP_FIELDS)

static PyTypeObject *scope_type, *journal_type, *sweep_type;
PyTypeObject *flow_type;
static PyObject *no_agenda, *no_moments; /* of scopes that have nothing to do: nobody adds to them */
static PyObject *push, *pop; /* of Python's module heapq */
static PyObject *now; /* `time.perf_counter` */
static PyObject *n_run, *n_is_interrupted;

static int push_to(PyObject *heap, PyObject *value) {
    PyObject *done = PyObject_CallFunctionObjArgs(push, heap, value, NULL);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

/* A moment without its last round: that of the scope around. */
static PyObject *outer_moment(PyObject *moment) {
    const Py_ssize_t rounds = PyTuple_Size(moment);
    return PyTuple_GetSlice(moment, 0, rounds ? rounds - 1 : 0);
}

static int schedule_at(Scope *scope, PyObject *position, PyObject *moment) {
    if (scope->_agenda == NULL || !PyDict_Check(scope->_agenda) || !PyTuple_Check(moment)) {
        PyErr_SetString(PyExc_TypeError, "a scope that has begun schedules positions at moments");
        return -1;
    }
    PyObject *waiting = PyDict_GetItemWithError(scope->_agenda, moment);
    if (waiting != NULL) {
        const int there = PySequence_Contains(waiting, position);
        return there ? (there < 0 ? -1 : 0) : push_to(waiting, position);
    }
    if (PyErr_Occurred())
        return -1;
    if (scope->_agenda == no_agenda) {
        PyObject *own = PyDict_New(), *moments = PyList_New(0);
        if (own != NULL && moments != NULL) {
            set_field(&scope->_moments, moments);
            set_field(&scope->_agenda, own);
        }
        Py_XDECREF(own);
        Py_XDECREF(moments);
        if (PyErr_Occurred())
            return -1;
    }
    PyObject *alone = PyList_New(1);
    if (alone == NULL)
        return -1;
    PyList_SetItem(alone, 0, Py_NewRef(position));
    const int failed = PyDict_SetItem(scope->_agenda, moment, alone) < 0 || push_to(scope->_moments, moment) < 0;
    Py_DECREF(alone);
    if (failed)
        return -1;
    if (scope->parent == NULL || scope->parent == Py_None)
        return 0;
    PyObject *outer = outer_moment(moment);
    const int done = outer == NULL ? -1 : schedule_at((Scope *)scope->parent, scope->position, outer);
    Py_XDECREF(outer);
    return done;
}

int schedule_in(PyObject *scope, PyObject *position, PyObject *moment) {
    if (PyObject_TypeCheck(scope, scope_type))
        return schedule_at((Scope *)scope, position, moment);
    PyErr_SetString(PyExc_TypeError, "nodes are scheduled in scopes");
    return -1;
}

PyDoc_STRVAR(schedule_doc, "schedule(position, moment): add the node at `position` to the agenda of `moment`.");
static PyObject *schedule(PyObject *self, PyObject *given) {
    PyObject *position, *moment;
    if (!PyArg_ParseTuple(given, "OO", &position, &moment) || schedule_at((Scope *)self, position, moment) < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* Takes the next node under the parent's moment `outer`: 1 with references to it and to its moment, 0 if there is none. */
static int next_of(Scope *scope, PyObject *outer, PyObject **member, PyObject **moment) {
    *member = *moment = NULL;
    while (PyList_Size(scope->_moments) > 0) {
        PyObject *first = PyList_GetItem(scope->_moments, 0);
        if (PyTuple_Size(first) != 0 || PyTuple_Size(outer) != 0) {
            PyObject *around = outer_moment(first);
            const int same = around == NULL ? -1 : PyObject_RichCompareBool(around, outer, Py_EQ);
            Py_XDECREF(around);
            if (same <= 0)
                return same;
        }
        PyObject *waiting = PyDict_GetItemWithError(scope->_agenda, first);
        if (waiting == NULL)
            return -1;
        if (PyList_Size(waiting)) {
            *moment = Py_NewRef(first);
            Py_INCREF(waiting); /* beginning a round calls Python, where a handler of signals may close the engine */
            const int other = PyObject_RichCompareBool(first, scope->moment, Py_NE);
            PyObject *begun = other > 0 ? PyObject_CallMethod((PyObject *)scope, "_begin", "(O)", first) : Py_NewRef(Py_None);
            PyObject *position = other < 0 || begun == NULL ? NULL : PyObject_CallFunctionObjArgs(pop, waiting, NULL);
            *member = position == NULL ? NULL : Py_XNewRef(PyList_GetItem(scope->body, PyLong_AsSsize_t(position)));
            Py_XDECREF(begun);
            Py_XDECREF(position);
            Py_DECREF(waiting);
            if (*member != NULL)
                return 1;
            Py_CLEAR(*moment);
            return -1;
        }
        PyObject *over = PyObject_CallFunctionObjArgs(pop, scope->_moments, NULL);
        if (over == NULL || PyDict_DelItem(scope->_agenda, over) < 0) {
            Py_XDECREF(over);
            return -1;
        }
        Py_DECREF(over);
    }
    if (scope->_agenda != no_agenda) { /* an emptied dict keeps its table */
        set_field(&scope->_agenda, no_agenda);
        set_field(&scope->_moments, no_moments);
    }
    return 0;
}

PyDoc_STRVAR(next_doc, "next(outer): take the next node from the agenda under the parent's moment `outer`; None if there is none.");
static PyObject *next(PyObject *self, PyObject *outer) {
    PyObject *member, *moment;
    const int found = PyTuple_Check(outer) ? next_of((Scope *)self, outer, &member, &moment) : -1;
    if (found <= 0)
        return found < 0 ? NULL : Py_NewRef(Py_None);
    PyObject *both = PyTuple_Pack(2, member, moment);
    Py_DECREF(member);
    Py_DECREF(moment);
    return both;
}

/* Whether the deadline has passed, or an interrupt waits. */
static int is_to_stop(PyObject *clock, double deadline, PyObject *call) {
    if (signal_waits())
        return 1;
    PyObject *now = PyObject_CallNoArgs(clock);
    const double time = now == NULL ? -1 : PyFloat_AsDouble(now);
    Py_XDECREF(now);
    if (time == -1 && PyErr_Occurred())
        return -1;
    if (time > deadline)
        return 1;
    if (call == Py_None)
        return 0;
    PyObject *interrupted = PyObject_GetAttr(call, n_is_interrupted);
    const int found = interrupted == NULL ? -1 : PyObject_IsTrue(interrupted);
    Py_XDECREF(interrupted);
    return found;
}

/* Runs the agenda of a scope under the parent's moment: 1 when it is empty, 0 when it was stopped. A nested scope that was stopped is
   scheduled again. */
static int run_scope(Scope *scope, PyObject *outer, PyObject *clock, double deadline, PyObject *call, PyObject *around) {
    PyObject *member, *moment;
    int going;
    while ((going = next_of(scope, outer, &member, &moment)) > 0) {
        if (PyObject_TypeCheck(member, scope_type)) {
            going = -1;
            if (Py_EnterRecursiveCall(" in a loop") == 0) {
                going = run_scope((Scope *)member, moment, clock, deadline, call, around);
                Py_LeaveRecursiveCall();
            }
            if (going == 0)
                going = schedule_at(scope, ((Scope *)member)->position, moment) < 0 ? -1 : 0;
        } else {
            PyObject *done = around == Py_None ? PyObject_CallMethodObjArgs(member, n_run, moment, NULL)
                                               : PyObject_CallFunctionObjArgs(around, member, moment, NULL);
            Py_XDECREF(done);
            const int stops = done == NULL ? -1 : is_to_stop(clock, deadline, call);
            going = stops < 0 ? -1 : !stops;
        }
        Py_DECREF(member);
        Py_DECREF(moment);
        if (going <= 0)
            return going;
    }
    return going < 0 ? -1 : 1;
}

PyDoc_STRVAR(run_doc, "run_agenda(root, deadline, clock, call, around): run a dataflow's agenda. Returns whether it is empty; False if "
                      "`clock` came to the deadline, `call` was interrupted, or a signal waits. `around`, unless it is None, runs a node "
                      "at a moment.");
static PyObject *run_agenda(PyObject *module, PyObject *given) {
    PyObject *root, *clock, *call, *around;
    double deadline;
    if (!PyArg_ParseTuple(given, "O!dOOO", scope_type, &root, &deadline, &clock, &call, &around))
        return NULL;
    PyObject *outermost = PyTuple_New(0);
    const int found = outermost == NULL ? -1 : run_scope((Scope *)root, outermost, clock, deadline, call, around);
    Py_XDECREF(outermost);
    return found < 0 ? NULL : PyBool_FromLong(found);
}

/* ---- Sweeps */

#define NAMES(F)                                                                                                                 \
    F(_end_rounds) F(_progress) F(_tell) F(append) F(available) F(closed) F(failure) F(flow) F(handle) F(low)
NAMES(DECLARE_NAME)

PyObject *flow_of(PyObject *node) {
    PyObject *flow = GET(node, flow);
    if (flow != NULL && !PyObject_TypeCheck(flow, flow_type)) {
        PyErr_SetString(PyExc_TypeError, "a node belongs to a dataflow");
        Py_CLEAR(flow);
    }
    return flow;
}

/* The epoch up to which all sources have been closed, a new reference. NULL without an error where one is computed by a dataflow: then
   Python finds it. */
static PyObject *closed_by_inputs(PyObject *sources) {
    PyObject *going = NULL, *ended = NULL; /* the least of those that go on, and the last of those that have ended */
    const Py_ssize_t count = PyTuple_Size(sources);
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *source = PyTuple_GetItem(sources, i);
        const int computed = attribute_is_set(source, n_flow);
        const int over = computed ? -1 : count == 1 ? 0 : attribute_is_true(source, n_closed);
        PyObject *low = over < 0 ? NULL : GET(source, low), **best = over > 0 ? &ended : &going;
        const int better = low == NULL ? -1 : *best == NULL ? 1 : PyObject_RichCompareBool(low, *best, over ? Py_GT : Py_LT);
        if (better > 0)
            set_field(best, low);
        Py_XDECREF(low);
        if (better < 0) {
            Py_CLEAR(going);
            Py_CLEAR(ended);
            return NULL;
        }
    }
    if (going == NULL)
        return ended == NULL ? PyLong_FromLong(0) : ended;
    Py_XDECREF(ended);
    return going;
}

/* The epoch up to which all sources have been closed, a new reference; None where one has failed. */
static PyObject *available_epoch(PyObject *flow, PyObject *sources) {
    for (Py_ssize_t i = 0; i < PyTuple_Size(sources); i++) {
        const int failed = attribute_is_set(PyTuple_GetItem(sources, i), n_failure);
        if (failed)
            return failed < 0 ? NULL : Py_NewRef(Py_None);
    }
    PyObject *found = closed_by_inputs(sources);
    return found != NULL || PyErr_Occurred() ? found : PyObject_CallMethodObjArgs(flow, n_available, NULL);
}

/* Whether a sweep of a dataflow is for here: it is not in the middle of one, and nobody limits it or counts its work. */
static int is_plain(Flow *flow) {
    return !is_set(flow->part) && !is_set(flow->limit) && flow->running == Py_False && is_set(flow->journal)
           && PyObject_TypeCheck(flow->journal, journal_type) && !is_set(((Journal *)flow->journal)->work);
}

/* Schedules the nodes that read what other dataflows and inputs have. */
static int wake_imports(PyObject *imports, PyObject *outermost) {
    int done = 0;
    for (Py_ssize_t i = 0; done == 0 && i < PyTuple_Size(imports); i++)
        done = wake_reader(PyTuple_GetItem(imports, i), outermost);
    return done;
}

/* Begins the record of a sweep. `time` is the last epoch that it computes. */
static int begin_record(Sweep *record, PyObject *name, PyObject *first, PyObject *time, PyObject *rows) {
    PyObject *began = PyObject_CallNoArgs(now), *seconds = PyFloat_FromDouble(0), *why = PyUnicode_FromString("");
    const int failed = began == NULL || seconds == NULL || why == NULL;
    if (!failed) {
        set_field(&record->name, name);
        set_field(&record->first, first);
        set_field(&record->time, time);
        set_field(&record->rows, rows);
        set_field(&record->began, began);
        set_field(&record->seconds, seconds);
        set_field(&record->why, why);
    }
    Py_XDECREF(began);
    Py_XDECREF(seconds);
    Py_XDECREF(why);
    return failed ? -1 : 0;
}

static int init_sweep(PyObject *self, PyObject *given, PyObject *options) {
    static char *names[] = {"name", "first", "time", "rows", NULL};
    PyObject *name, *first, *time, *rows;
    return PyArg_ParseTupleAndKeywords(given, options, "OOOO", names, &name, &first, &time, &rows)
               ? begin_record((Sweep *)self, name, first, time, rows)
               : -1;
}

/* Notes a sweep that has ended. */
static int note_sweep(PyObject *self, PyObject *ended) {
    Journal *journal = (Journal *)self;
    Sweep *record = (Sweep *)ended;
    if (!PyObject_TypeCheck(self, journal_type) || !PyObject_TypeCheck(ended, sweep_type) || record->began == NULL
        || journal->sweeps == NULL || journal->why == NULL || journal->listeners == NULL) {
        PyErr_SetString(PyExc_TypeError, "a journal notes records of sweeps");
        return -1;
    }
    PyObject *time = PyObject_CallNoArgs(now), *seconds = time == NULL ? NULL : PyNumber_Subtract(time, record->began);
    Py_XDECREF(time);
    if (seconds == NULL)
        return -1;
    set_field(&record->seconds, seconds);
    Py_DECREF(seconds);
    const int says_why = record->why == NULL ? 0 : PyObject_IsTrue(record->why);
    if (says_why < 0)
        return -1;
    if (!says_why)
        set_field(&record->why, journal->why);
    PyObject *kept = PyObject_CallMethodObjArgs(journal->sweeps, n_append, ended, NULL);
    Py_XDECREF(kept);
    if (kept == NULL || add_to_field(&journal->ended_sweeps, 1) < 0)
        return -1;
    const int told = PyObject_IsTrue(journal->listeners);
    PyObject *done = told < 0 ? NULL : told ? PyObject_CallMethodObjArgs(self, n__tell, ended, NULL) : Py_NewRef(Py_None);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

PyDoc_STRVAR(ended_doc, "ended(sweep): record a sweep that has ended, and call listeners.");
static PyObject *journal_ended(PyObject *self, PyObject *sweep) { return note_sweep(self, sweep) < 0 ? NULL : Py_NewRef(Py_None); }

/* The record of a sweep of a dataflow, for the journal. */
static PyObject *record_of(PyObject *class, PyObject *flow, PyObject *reached, PyObject *high, PyObject *imports) {
    int64_t rows = 0;
    for (Py_ssize_t i = 0; i < PyTuple_Size(imports); i++) {
        PyObject *handle = GET(PyTuple_GetItem(imports, i), handle);
        if (handle == NULL)
            return NULL;
        rows += rows_waiting(handle);
        Py_DECREF(handle);
    }
    const int64_t end = PyLong_AsLongLong(high);
    if (end == -1 && PyErr_Occurred())
        return NULL;
    PyObject *name = FIELD(flow, name), *number = PyLong_FromLongLong(rows), *time = PyLong_FromLongLong(end - 1);
    PyObject *record =
        name == NULL || number == NULL || time == NULL ? NULL : PyType_GenericAlloc((PyTypeObject *)class, 0);
    if (record != NULL && begin_record((Sweep *)record, name, reached, time, number) < 0)
        Py_CLEAR(record);
    Py_XDECREF(name);
    Py_XDECREF(number);
    Py_XDECREF(time);
    return record;
}

/* What follows when the agenda is empty. */
static int end_sweep(PyObject *flow, PyObject *high, PyObject *record) {
    set_field(&((Flow *)flow)->running, Py_False);
    set_field(&((Flow *)flow)->reached, high);
    set_field(&((Flow *)flow)->swept, Py_True);
    const int loops = ((Flow *)flow)->rounds == NULL ? 0 : PyObject_IsTrue(((Flow *)flow)->rounds);
    PyObject *rested = loops < 0 ? NULL : loops ? PyObject_CallMethodObjArgs(flow, n__end_rounds, NULL) : Py_NewRef(Py_None);
    Py_XDECREF(rested);
    if (rested != NULL)
        set_field(&((Flow *)flow)->sweep, Py_None);
    PyObject *journal = rested == NULL ? NULL : FIELD(flow, journal);
    const int noted = journal == NULL ? -1 : note_sweep(journal, record);
    Py_XDECREF(journal);
    PyObject *callbacks = noted < 0 ? NULL : FIELD(flow, on_swept);
    int done = callbacks == NULL ? -1 : 0;
    for (Py_ssize_t i = 0; done == 0 && i < PyTuple_Size(callbacks); i++) {
        PyObject *called = PyObject_CallNoArgs(PyTuple_GetItem(callbacks, i));
        Py_XDECREF(called);
        done = called == NULL ? -1 : 0;
    }
    Py_XDECREF(callbacks);
    return done;
}

PyDoc_STRVAR(sweep_doc, "sweep(flow, deadline, clock, call, record): begin a sweep of a dataflow and run it, as `Dataflow.begin`, "
                        "`run_agenda` and `Dataflow._end` do. Returns whether it has ended; None, and nothing has happened, where these "
                        "have to, or there is nothing to sweep. `record` is the class of what the journal gets.");
static PyObject *sweep(PyObject *module, PyObject *given) {
    PyObject *flow, *clock, *call, *class, *done = NULL;
    double deadline;
    if (!PyArg_ParseTuple(given, "O!dOOO!", flow_type, &flow, &deadline, &clock, &call, &PyType_Type, &class))
        return NULL;
    if (!PyType_IsSubtype((PyTypeObject *)class, sweep_type)) {
        PyErr_SetString(PyExc_TypeError, "a sweep is recorded by a SweepRecord");
        return NULL;
    }
    if (!is_plain((Flow *)flow))
        Py_RETURN_NONE;
    PyObject *sources = FIELD(flow, sources), *high = sources == NULL ? NULL : available_epoch(flow, sources), *reached = FIELD(flow, reached);
    PyObject *imports = FIELD(flow, imports), *root = FIELD(flow, root), *record = NULL, *outermost = PyTuple_New(0);
    const int is_behind = high == NULL || reached == NULL ? -1 : high == Py_None ? 0 : PyObject_RichCompareBool(high, reached, Py_GT);
    if (is_behind == 0)
        done = Py_NewRef(Py_None);
    if (is_behind <= 0 || imports == NULL || root == NULL || outermost == NULL || !PyObject_TypeCheck(root, scope_type)
        || (record = record_of(class, flow, reached, high, imports)) == NULL)
        goto end;
    set_field(&((Flow *)flow)->high, high);
    set_field(&((Flow *)flow)->running, Py_True);
    set_field(&((Flow *)flow)->away, Py_None);
    set_field(&((Flow *)flow)->sweep, record);
    if (wake_imports(imports, outermost) < 0)
        goto end;
    const int found = run_scope((Scope *)root, outermost, clock, deadline, call, Py_None);
    if (found == 0 || (found > 0 && end_sweep(flow, high, record) == 0))
        done = PyBool_FromLong(found);
end:
    Py_XDECREF(sources);
    Py_XDECREF(high);
    Py_XDECREF(reached);
    Py_XDECREF(imports);
    Py_XDECREF(root);
    Py_XDECREF(record);
    Py_XDECREF(outermost);
    return done;
}

/* ---- What a dataflow has answered */

/* A new reference. One that is asleep has nothing to do, so its answers hold as far as its sources are closed. */
static PyObject *low_of(Flow *flow) {
    if (flow->awake == NULL || flow->reached == NULL || flow->sources == NULL || !PyTuple_Check(flow->sources))
        return not_begun();
    if (flow->awake == Py_True)
        return Py_NewRef(flow->reached);
    PyObject *sources = Py_NewRef(flow->sources), *closed = closed_by_inputs(sources);
    Py_DECREF(sources);
    if (closed == NULL) {
        if (PyErr_Occurred())
            return NULL;
        PyObject *known = PyDict_New(), *found = known == NULL ? NULL : PyObject_CallMethodObjArgs((PyObject *)flow, n__progress, known, NULL);
        PyObject *low = found == NULL ? NULL : Py_XNewRef(PyTuple_GetItem(found, 0));
        Py_XDECREF(known);
        Py_XDECREF(found);
        return low;
    }
    const int further = PyObject_RichCompareBool(closed, flow->reached, Py_GT);
    if (further > 0) {
        set_field(&flow->reached, closed);
        set_field(&flow->high, closed);
    }
    Py_DECREF(closed);
    return further < 0 ? NULL : Py_NewRef(flow->reached);
}

static PyObject *flow_low(PyObject *self, void *unused) { return low_of((Flow *)self); }

PyDoc_STRVAR(wake_doc, "wake(): note that there is something to do.");
static PyObject *wake_flow(PyObject *self, PyObject *unused) { return woken_flow(self); }

PyObject *woken_flow(PyObject *self) {
    Flow *flow = (Flow *)self;
    if (flow->awake != Py_True) {
        PyObject *low = low_of(flow); /* as far as it had nothing to do */
        if (low == NULL)
            return NULL;
        set_field(&flow->reached, low);
        set_field(&flow->awake, Py_True);
        Py_DECREF(low);
    }
    if (!is_set(flow->on_wake))
        Py_RETURN_NONE;
    PyObject *tell = Py_NewRef(flow->on_wake), *told = PyObject_CallFunctionObjArgs(tell, self, NULL);
    Py_DECREF(tell);
    return told;
}

/* Whether a dataflow has to go on, or to answer for the first time; -1 with an error. */
static int has_work(Flow *flow) {
    int open = flow->running != Py_False;
    if (!open && flow->swept != Py_True) {
        PyObject *sources = Py_NewRef(flow->sources);
        for (Py_ssize_t i = 0; open == 0 && i < PyTuple_Size(sources); i++) {
            const int closed = attribute_is_true(PyTuple_GetItem(sources, i), n_closed);
            open = closed < 0 ? -1 : !closed;
        }
        Py_DECREF(sources);
    }
    return open;
}

PyDoc_STRVAR(rest_doc, "rest(): fall asleep if there is nothing to do. Returns whether it sleeps.");
static PyObject *rest_flow(PyObject *self, PyObject *unused) {
    Flow *flow = (Flow *)self;
    if (flow->running == NULL || flow->swept == NULL || flow->sources == NULL || flow->imports == NULL || flow->outlets == NULL)
        return not_begun();
    if (is_set(flow->failure)) {
        set_field(&flow->awake, flow->running); /* while it runs, it lacks something to fail */
        return PyBool_FromLong(flow->awake == Py_False);
    }
    int waits = has_work(flow);
    for (Py_ssize_t i = 0; waits == 0 && i < PyTuple_Size(flow->imports); i++) {
        PyObject *handle = GET(PyTuple_GetItem(flow->imports, i), handle);
        waits = handle == NULL ? -1 : has_batches(handle);
        Py_XDECREF(handle);
    }
    for (Py_ssize_t i = 0; waits == 0 && i < PyTuple_Size(flow->outlets); i++)
        waits = has_batches(PyTuple_GetItem(flow->outlets, i));
    if (waits == 0)
        set_field(&flow->awake, Py_False);
    return waits < 0 ? NULL : PyBool_FromLong(!waits);
}

/* ---- Types */

#define FLOW_MEMBER(name) MEMBER(Flow, name),
static PyMemberDef flow_members[] = {FLOW_FIELDS(FLOW_MEMBER){NULL, 0, 0, 0, NULL}};
static PyGetSetDef flow_attributes[] = {
    {"low", flow_low, NULL, "The first epoch that it has not answered.", NULL}, {NULL, NULL, NULL, NULL, NULL}};
static PyMethodDef flow_methods[] = {
    {"rest", rest_flow, METH_NOARGS, rest_doc}, {"wake", wake_flow, METH_NOARGS, wake_doc}, {NULL, NULL, 0, NULL}};
static PyType_Slot flow_slots[] = {
    SLOTS(flow), {Py_tp_members, flow_members}, {Py_tp_getset, flow_attributes}, {Py_tp_methods, flow_methods}, {0, NULL}};

#define JOURNAL_MEMBER(name) MEMBER(Journal, name),
static PyMemberDef journal_members[] = {JOURNAL_FIELDS(JOURNAL_MEMBER){NULL, 0, 0, 0, NULL}};
static PyMethodDef journal_methods[] = {{"ended", journal_ended, METH_O, ended_doc}, {NULL, NULL, 0, NULL}};
static PyType_Slot journal_slots[] = {
    SLOTS(journal), {Py_tp_members, journal_members}, {Py_tp_methods, journal_methods}, {0, NULL}};

#define SWEEP_MEMBER(name) MEMBER(Sweep, name),
static PyMemberDef sweep_members[] = {SWEEP_FIELDS(SWEEP_MEMBER){NULL, 0, 0, 0, NULL}};
static PyType_Slot sweep_slots[] = {SLOTS(sweep), {Py_tp_init, init_sweep}, {Py_tp_members, sweep_members}, {0, NULL}};

#define SCOPE_MEMBER(name) MEMBER(Scope, name),
static PyMemberDef scope_members[] = {SCOPE_FIELDS(SCOPE_MEMBER){NULL, 0, 0, 0, NULL}};
static PyMethodDef scope_methods[] = {
    {"schedule", schedule, METH_VARARGS, schedule_doc}, {"next", next, METH_O, next_doc}, {NULL, NULL, 0, NULL}};
static PyType_Slot scope_slots[] = {SLOTS(scope), {Py_tp_members, scope_members}, {Py_tp_methods, scope_methods}, {0, NULL}};
static PyMethodDef agenda_functions[] = {{"run_agenda", run_agenda, METH_VARARGS, run_doc},
                                         {"sweep", sweep, METH_VARARGS, sweep_doc},
                                         {NULL, NULL, 0, NULL}};

int add_agenda(PyObject *module) {
    NAMES(INTERN)
    PyObject *heaps = PyImport_ImportModule("heapq"), *clocks = PyImport_ImportModule("time");
    now = clocks == NULL ? NULL : PyObject_GetAttrString(clocks, "perf_counter");
    Py_XDECREF(clocks);
    if (heaps == NULL || now == NULL) {
        Py_XDECREF(heaps);
        return -1;
    }
    push = PyObject_GetAttrString(heaps, "heappush");
    pop = PyObject_GetAttrString(heaps, "heappop");
    Py_DECREF(heaps);
    n_run = PyUnicode_InternFromString("run");
    n_is_interrupted = PyUnicode_InternFromString("is_interrupted");
    no_agenda = PyDict_New();
    no_moments = PyList_New(0);
    if (push == NULL || pop == NULL || n_run == NULL || n_is_interrupted == NULL || no_agenda == NULL || no_moments == NULL
        || PyModule_AddObjectRef(module, "NO_AGENDA", no_agenda) < 0 || PyModule_AddObjectRef(module, "NO_MOMENTS", no_moments) < 0)
        return -1;
    const unsigned long record = Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC;
    return ADD(scope_type, "ScopeRecord", Scope, record, scope_slots, NULL) && ADD(flow_type, "FlowRecord", Flow, record, flow_slots, NULL)
                   && ADD(journal_type, "JournalRecord", Journal, record, journal_slots, NULL)
                   && ADD(sweep_type, "SweepRecord", Sweep, record, sweep_slots, NULL)
               ? PyModule_AddFunctions(module, agenda_functions)
               : -1;
}
