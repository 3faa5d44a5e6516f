/* What call.c offers to the other parts of the extension module. See call.c for what rows and kernels are. */

#ifndef TEKTITE_ROWS_H
#define TEKTITE_ROWS_H

#define Py_LIMITED_API 0x030b0000
#define PY_SSIZE_T_CLEAN
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL tektite_arrays /* NumPy's functions, which call.c looks up for all files */

#include <Python.h>
#include <structmember.h>

#include "runtime.h"

#define PRIVATE __attribute__((visibility("hidden")))

typedef struct {
    PyObject_HEAD
    PyObject *head;     /* the head as an array; NULL until somebody asks for it */
    PyObject *memory;   /* keeps columns alive; NULL if nothing else has to */
    Block *head_block;  /* the head as a kernel made it */
    Block *block;       /* columns as a kernel made them */
    int64_t *words;     /* of the head */
    int64_t length;     /* of the head, in words */
    int64_t n, at;
} Rows;

/* A head begins with the number of rows, its own address and the number of columns; then come an address, a step and a constant for
   each column (see layout/rows.py). */
enum { HEAD_ROWS, HEAD_ADDRESS, HEAD_WIDTH, HEAD_COLUMNS, PER_COLUMN = 3, COLUMN_STEP = 1, COLUMN_CONSTANT = 2 };

extern PRIVATE PyTypeObject *rows_type;

/* Lets new rows be the same as others, which stay in memory as long as these. */
PRIVATE void share_rows(Rows *rows, Rows *others);
/* Frees what rows refer to. */
PRIVATE void clear_rows(Rows *rows);
/* An array of the attribute `at` of each of some objects, which it keeps alive. */
PRIVATE PyObject *addresses_of(PyObject *rows);
/* A new array of integers, and where they lie. */
PRIVATE PyObject *new_words(Py_ssize_t number, int64_t **words);
/* The words that all rows have in some columns; None if there is no such word. A new reference. */
PRIVATE PyObject *constants_of(Rows *rows, Py_ssize_t first, Py_ssize_t count);
/* The first of some integers. */
PRIVATE int64_t first_word(PyObject *array);
/* The best of the processors that kernels are compiled for that this one is; '' if none. */
PRIVATE PyObject *processor(PyObject *module, PyObject *nothing);

#endif
