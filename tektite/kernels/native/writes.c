/* Writing a few rows to a table by one call: `write_few` finds the session, takes the lock, encodes the rows and puts them into the
   write set, which tektite/engine does elsewhere by some twenty functions of Python. It looks whether a call is one that it knows
   before it changes anything, and leaves all others to them: other kinds of rows and values, and everything that is to be refused. */

#define NO_IMPORT_ARRAY

#include "traces.h"

#include <numpy/arrayobject.h>

#include <stdlib.h>
#include <string.h>

#define NAMES(F)                                                                                                                 \
    F(__enter__) F(add) F(any) F(autocommit) F(closed) F(commit) F(decision) F(engine) F(few_columns) F(held) F(is_closed)       \
    F(is_system) F(lock) F(low) F(memory) F(over) F(release) F(sessions) F(snapshots) F(update_shape) F(updates) F(writes)
NAMES(DECLARE_NAME)

/* What waits of one input: see tektite/engine/pending_updates.py. */
#define PENDING_FIELDS(F) F(_allowed) F(_counted) F(_memory) F(_small) F(chunks) F(shape)
STRUCT(Pending, PENDING_FIELDS)
RECORD(pending, PENDING_FIELDS)

static PyTypeObject *pending_type;

#define LARGEST_DIFF (1LL << 48)
static const int64_t null_word = INT64_MIN, nan_word = 0x7FF8000000000000, magnitude = INT64_MAX;

/* What `write_few` makes: chunks, what waits of an input (an empty one, to be copied), and write sets. */
enum { CHUNK, NO_UPDATES, WRITE_SET };

/* ---- Values */

/* The word of a value of a column, which is two bytes: its place in rows, and its kind, in capitals if it holds no NULL. False for
   a value that is not for here. */
static int word_of(PyObject *value, char kind, int64_t *word) {
    if (value == Py_None) {
        *word = null_word;
        return kind >= 'a';
    }
    switch (kind | 0x20) {
    case 'i': {
        int overflow = 1;
        *word = Py_IS_TYPE(value, &PyLong_Type) ? PyLong_AsLongLongAndOverflow(value, &overflow) : 0;
        return !overflow && *word != null_word;
    }
    case 'f': {
        if (!Py_IS_TYPE(value, &PyFloat_Type))
            return 0;
        const double number = PyFloat_AsDouble(value);
        int64_t bits;
        memcpy(&bits, &number, sizeof bits);
        *word = number != number ? nan_word : bits ^ ((bits >> 63) & magnitude);
        return 1;
    }
    default:
        *word = value == Py_True;
        return Py_IS_TYPE(value, &PyBool_Type);
    }
}

/* Whether an object is an array of words with so many dimensions. */
static int is_words(PyObject *value, int dimensions) {
    PyArrayObject *array = (PyArrayObject *)value;
    return Py_IS_TYPE(value, &PyArray_Type) && PyArray_TYPE(array) == NPY_INT64 && PyArray_NDIM(array) == dimensions
           && PyArray_CHKFLAGS(array, NPY_ARRAY_ALIGNED) && PyArray_ISNOTSWAPPED(array);
}

/* How many rows of so many columns there are; 0 if they are not for here. */
static Py_ssize_t rows_given(PyObject *data, Py_ssize_t columns) {
    Py_ssize_t rows = 0;
    if (Py_IS_TYPE(data, &PyList_Type))
        rows = PyList_Size(data);
    else if (is_words(data, 2) && PyArray_DIMS((PyArrayObject *)data)[1] == columns)
        rows = PyArray_DIMS((PyArrayObject *)data)[0];
    else if (columns == 1 && is_words(data, 1))
        rows = PyArray_DIMS((PyArrayObject *)data)[0];
    return rows < FEW_ROWS ? rows : 0;
}

/* Fills the words of rows column by column, in the order in which they are stored. False if a value is not for here. */
static int fill_columns(PyObject *data, const char *columns, Py_ssize_t width, Py_ssize_t rows, int64_t *words) {
    if (!Py_IS_TYPE(data, &PyList_Type)) {
        PyArrayObject *array = (PyArrayObject *)data;
        const npy_intp *steps = PyArray_STRIDES(array);
        for (Py_ssize_t j = 0; j < width; j++) {
            if ((columns[2 * j + 1] | 0x20) != 'i')
                return 0;
            const char *at = (const char *)PyArray_DATA(array) + (width == 1 ? 0 : columns[2 * j] * steps[1]);
            for (Py_ssize_t i = 0; i < rows; i++, at += steps[0])
                if ((words[j * rows + i] = *(const int64_t *)at) == null_word)
                    return 0;
        }
        return 1;
    }
    for (Py_ssize_t i = 0; i < rows; i++) {
        PyObject *row = PyList_GetItem(data, i);
        if (!Py_IS_TYPE(row, &PyTuple_Type) || PyTuple_Size(row) != width)
            return 0;
        for (Py_ssize_t j = 0; j < width; j++)
            if (!word_of(PyTuple_GetItem(row, columns[2 * j]), columns[2 * j + 1], words + j * rows + i))
                return 0;
    }
    return 1;
}

/* Fills the diff of each row. False if they are not for here. */
static int fill_diffs(PyObject *diffs, Py_ssize_t rows, int64_t *words) {
    const int is_list = Py_IS_TYPE(diffs, &PyList_Type);
    if (is_list ? PyList_Size(diffs) != rows : !is_words(diffs, 1) || PyArray_DIMS((PyArrayObject *)diffs)[0] != rows)
        return 0;
    for (Py_ssize_t i = 0; i < rows; i++) {
        if (!is_list)
            words[i] = *(const int64_t *)PyArray_GETPTR1((PyArrayObject *)diffs, i);
        else if (!word_of(PyList_GetItem(diffs, i), 'I', words + i))
            return 0;
        if (words[i] > LARGEST_DIFF || words[i] < -LARGEST_DIFF)
            return 0;
    }
    return 1;
}

/* ---- Rows */

/* A chunk with memory for some rows: stored columns of data, the time `epoch`, and diffs that are stored or `diff`. */
static Rows *new_chunk(PyTypeObject *class, Py_ssize_t rows, Py_ssize_t width, int64_t epoch, int has_diffs, int64_t diff) {
    const Py_ssize_t length = HEAD_COLUMNS + PER_COLUMN * (width + 2), stored = rows * (width + has_diffs);
    Block *block = malloc(sizeof(Block) + sizeof(int64_t) * (length + stored));
    Rows *made = block == NULL ? (Rows *)PyErr_NoMemory() : (Rows *)PyType_GenericAlloc(class, 0);
    if (made == NULL) {
        free(block);
        return NULL;
    }
    int64_t *head = (int64_t *)(block + 1), *words = head + length;
    *block = (Block){2, NULL, NULL, head, sizeof(int64_t) * (length + stored), NULL};
    head[HEAD_ROWS] = rows;
    head[HEAD_ADDRESS] = (int64_t)head;
    head[HEAD_WIDTH] = width + 2;
    for (Py_ssize_t j = 0; j < width + 2; j++) {
        int64_t *column = head + HEAD_COLUMNS + PER_COLUMN * j;
        const int is_stored = j < width || (j > width && has_diffs);
        column[0] = (int64_t)(is_stored ? words + rows * (j < width ? j : width) : column + COLUMN_CONSTANT);
        column[COLUMN_STEP] = is_stored ? sizeof(int64_t) : 0;
        column[COLUMN_CONSTANT] = is_stored ? 0 : j == width ? epoch : diff;
    }
    made->head_block = made->block = block;
    made->words = head;
    made->length = length;
    made->n = rows;
    made->at = (int64_t)head;
    return made;
}

/* The chunk of some rows; None if it is not for here. */
static PyObject *chunk_of(PyObject *source, PyObject *class, PyObject *data, PyObject *diffs, int64_t diff, int64_t epoch) {
    PyObject *columns = GET(source, few_columns), *found = NULL;
    if (columns == NULL || columns == Py_None)
        return columns;
    const char *kinds = PyBytes_AsString(columns);
    const Py_ssize_t width = kinds == NULL ? 0 : PyBytes_Size(columns) / 2, rows = kinds == NULL ? 0 : rows_given(data, width);
    if (rows) {
        const int has_diffs = diffs != Py_None;
        Rows *made = new_chunk((PyTypeObject *)class, rows, width, epoch, has_diffs, diff);
        int64_t *words = made == NULL ? NULL : made->words + made->length;
        found = (PyObject *)made;
        if (made != NULL
            && (!fill_columns(data, kinds, width, rows, words) || (has_diffs && !fill_diffs(diffs, rows, words + width * rows)))) {
            Py_DECREF(found);
            found = Py_NewRef(Py_None);
        }
    } else if (kinds != NULL) {
        found = Py_NewRef(Py_None);
    }
    Py_DECREF(columns);
    return found;
}

/* ---- Write sets */

/* Puts a chunk into a write set, whole or not at all. */
static int put_into(PyObject *writes, PyObject *source, PyObject *chunk, PyObject *last, PyObject *empty) {
    PyObject *updates = GET(writes, updates), *waiting = NULL, *pending = NULL, *each = NULL;
    int done = -1;
    if (updates == NULL || !PyDict_Check(updates))
        goto end;
    if ((waiting = PyDict_GetItemWithError(updates, source)) != NULL) {
        Py_INCREF(waiting);
        PyObject *added = PyObject_CallMethodObjArgs(waiting, n_add, chunk, last, NULL);
        done = added == NULL ? -1 : 0;
        Py_XDECREF(added);
        goto end;
    }
    if (PyErr_Occurred() || (each = PyTuple_Pack(2, chunk, last)) == NULL || (pending = PyType_GenericAlloc(Py_TYPE(empty), 0)) == NULL)
        goto end;
    Pending *made = (Pending *)pending, *like = (Pending *)empty;
    PyObject *engine = GET(source, engine);
    made->_memory = engine == NULL ? NULL : GET(engine, memory);
    Py_XDECREF(engine);
    made->_allowed = Py_NewRef(like->_allowed);
    made->_counted = Py_NewRef(like->_counted);
    made->_small = PyLong_FromLong(1);
    made->shape = GET(source, update_shape);
    made->chunks = PyList_New(1);
    if (made->chunks != NULL)
        PyList_SetItem(made->chunks, 0, Py_NewRef(each));
    if (made->_memory != NULL && made->_small != NULL && made->shape != NULL && made->chunks != NULL)
        done = PyDict_SetItem(updates, source, pending);
end:
    Py_XDECREF(updates);
    Py_XDECREF(waiting);
    Py_XDECREF(each);
    Py_XDECREF(pending);
    return done;
}

/* Whether nothing stands in the way of a write by the calling thread's session: no change that is to be applied, no transaction,
   and nothing that has ended. */
static int may_write(PyObject *source, PyObject *engine, PyObject *lock) {
    PyObject *snapshots = GET(engine, snapshots), *sessions = GET(engine, sessions);
    PyObject *over = sessions == NULL ? NULL : GET(sessions, over);
    int found = -1;
    if (snapshots != NULL && over != NULL && (found = attribute_is_set(lock, n_decision)) == 0
        && (found = attribute_is_true(snapshots, n_any)) == 0 && (found = attribute_is_true(source, n_closed)) == 0
        && (found = attribute_is_true(source, n_is_system)) == 0 && (found = attribute_is_true(engine, n_is_closed)) == 0)
        found = PyObject_IsTrue(over);
    Py_XDECREF(snapshots);
    Py_XDECREF(sessions);
    Py_XDECREF(over);
    return found < 0 ? -1 : !found;
}

/* `write_few` with the lock held. */
static PyObject *written(PyObject *classes, PyObject *source, PyObject *engine, PyObject *lock, PyObject *data, PyObject *diffs,
                         int64_t diff) {
    const int may = may_write(source, engine, lock);
    if (may <= 0)
        return may < 0 ? NULL : Py_NewRef(Py_NotImplemented);
    PyObject *low = GET(source, low), *chunk = NULL, *writes = NULL, *done = NULL;
    const int64_t epoch = low == NULL ? -1 : PyLong_AsLongLong(low);
    if (epoch < 0 || (chunk = chunk_of(source, PyTuple_GetItem(classes, CHUNK), data, diffs, diff, epoch)) == NULL)
        goto end;
    if (chunk == Py_None) {
        done = Py_NewRef(Py_NotImplemented);
        goto end;
    }
    const int commits = attribute_is_true(engine, n_autocommit);
    if (commits < 0)
        goto end;
    writes = commits ? PyObject_CallNoArgs(PyTuple_GetItem(classes, WRITE_SET)) : GET(engine, writes);
    if (writes != NULL && put_into(writes, source, chunk, low, PyTuple_GetItem(classes, NO_UPDATES)) == 0)
        done = commits ? PyObject_CallMethodObjArgs(engine, n_commit, writes, NULL) : Py_NewRef(Py_None);
end:
    Py_XDECREF(low);
    Py_XDECREF(chunk);
    Py_XDECREF(writes);
    return done;
}

PyDoc_STRVAR(write_few_doc, "write_few(source, data, diffs, diff): write rows to an input for the calling session, as `Table.update` "
                            "does: each with its own diff, or all with one. What that returns; NotImplemented, and nothing has "
                            "happened, where this is not for here.");
static PyObject *write_few(PyObject *classes, PyObject *const *given, Py_ssize_t count) {
    if (count != 4) {
        PyErr_SetString(PyExc_TypeError, "write_few takes an input, rows, diffs and a diff");
        return NULL;
    }
    PyObject *source = given[0], *data = given[1];
    if (!Py_IS_TYPE(data, &PyList_Type) && !Py_IS_TYPE(data, &PyArray_Type))
        return Py_NewRef(Py_NotImplemented);
    const int64_t diff = PyLong_AsLongLong(given[3]);
    PyObject *engine = GET(source, engine), *lock = GET(source, lock), *held = lock == NULL ? NULL : GET(lock, held), *done = NULL;
    PyObject *entered = engine == NULL || held == NULL || PyErr_Occurred() ? NULL : PyObject_CallMethodObjArgs(held, n___enter__, NULL);
    if (entered != NULL) {
        PyObject *type, *value, *trace;
        done = written(classes, source, engine, lock, data, given[2], diff);
        PyErr_Fetch(&type, &value, &trace);
        PyObject *released = PyObject_CallMethodObjArgs(held, n_release, NULL);
        if (released == NULL) {
            Py_CLEAR(done);
            Py_XDECREF(type);
            Py_XDECREF(value);
            Py_XDECREF(trace);
        } else {
            PyErr_Restore(type, value, trace);
        }
        Py_XDECREF(released);
    }
    Py_XDECREF(engine);
    Py_XDECREF(lock);
    Py_XDECREF(held);
    Py_XDECREF(entered);
    return done;
}

static PyMethodDef write_method = {"write_few", (PyCFunction)(void (*)(void))write_few, METH_FASTCALL, write_few_doc};

PyDoc_STRVAR(writer_doc, "writer(chunk, no_updates, write_set): the function `write_few`, given the class of chunks, an empty "
                         "`PendingUpdates`, and the class of write sets.");
static PyObject *writer(PyObject *module, PyObject *classes) {
    PyObject *chunk, *none, *set;
    if (!PyArg_ParseTuple(classes, "OOO", &chunk, &none, &set))
        return NULL;
    if (!PyType_Check(chunk) || !PyType_IsSubtype((PyTypeObject *)chunk, rows_type) || !PyObject_TypeCheck(none, pending_type)
        || ((Pending *)none)->_allowed == NULL || ((Pending *)none)->_counted == NULL) {
        PyErr_SetString(PyExc_TypeError, "a writer needs a class of Rows, and a PendingUpdates");
        return NULL;
    }
    return PyCFunction_NewEx(&write_method, classes, NULL);
}

#define PENDING_MEMBER(name) MEMBER(Pending, name),
static PyMemberDef pending_members[] = {PENDING_FIELDS(PENDING_MEMBER){NULL, 0, 0, 0, NULL}};
static PyType_Slot pending_slots[] = {SLOTS(pending), {Py_tp_members, pending_members}, {0, NULL}};
static PyMethodDef write_functions[] = {{"writer", writer, METH_VARARGS, writer_doc}, {NULL, NULL, 0, NULL}};

int add_writes(PyObject *module) {
    NAMES(INTERN)
    return ADD(pending_type, "PendingRecord", Pending, Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, pending_slots, NULL)
               ? PyModule_AddFunctions(module, write_functions)
               : -1;
}
