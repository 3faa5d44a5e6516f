/* Signals that come while the main thread works on what must not be left half done wait until it is done. Python calls its handlers
   in the main thread between any two instructions, and a handler may raise: KeyboardInterrupt, for one.

   So a handler of C stands before Python's, which holds signals while `HELD` is entered, and passes them on otherwise. It costs
   two additions and a question to the system. Python does not know of it: `signal.getsignal` says what it said before. Whoever sets another handler of Python removes
   it, and the next block sets it again; who sets one of C has that alone.

   A signal does not wait for ever: when the same one comes again after PATIENCE seconds, both are passed on. */

#include "rows.h"
#include "traces.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>

enum { PATIENCE = 2 };

typedef void (*Handler)(int);

/* A signal that programs let Python handle. */
typedef struct {
    int number;
    atomic_int waits;
    atomic_llong since; /* seconds at which it began to wait */
} Watched;

static Watched watched[] = {{.number = SIGINT}, {.number = SIGTERM}, {.number = SIGALRM}, {.number = SIGHUP}, {.number = SIGUSR1}, {.number = SIGUSR2}};
enum { WATCHED = sizeof(watched) / sizeof(*watched) };

static Handler python_handler; /* the function of C that notes a signal for Python; NULL while it is not known */
static unsigned long main_thread;
static atomic_int held;          /* the blocks that the main thread is in */
static atomic_int open_at = -1;  /* at how many blocks SIGINT is let through all the same */
static atomic_int one_waits;
static PyObject *kept;           /* what was raised and is to be raised when the blocks are left */
static struct timespec looked;   /* when handlers were looked at */

static int on_main_thread(void) { return PyThread_get_thread_ident() == main_thread; }

static int is_held(int number) {
    const int blocks = atomic_load(&held);
    return blocks > 0 && !(number == SIGINT && atomic_load(&open_at) == blocks);
}

/* Passes a signal on that has waited. */
static int pass_on(Watched *one) {
    const int waited = atomic_exchange(&one->waits, 0);
    if (waited)
        python_handler(one->number);
    return waited;
}

static void on_signal(int number) {
    const int before = errno;
    Watched *one = watched;
    while (one->number != number)
        one++;
    if (!is_held(number)) {
        python_handler(number);
    } else {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (!atomic_load(&one->waits))
            atomic_store(&one->since, now.tv_sec);
        const int is_new = !atomic_exchange(&one->waits, 1);
        atomic_store(&one_waits, 1);
        if (!is_held(number) || (!is_new && now.tv_sec - atomic_load(&one->since) > PATIENCE)) /* the block has ended meanwhile */
            pass_on(one);
    }
    errno = before;
}

/* Whether two functions lie in the same file of code. */
static int are_together(void *one, void *other) {
    Dl_info first, second;
    return dladdr(one, &first) && dladdr(other, &second) && first.dli_fbase == second.dli_fbase;
}

/* Finds the function of C that Python lets the system call. */
static void find_python_handler(int number, Handler there) {
    PyObject *signals = PyImport_ImportModule("_signal");
    PyObject *handler = signals == NULL ? NULL : PyObject_CallMethod(signals, "getsignal", "i", number);
    if (handler == NULL)
        PyErr_Clear();
    else if (PyCallable_Check(handler) && are_together((void *)there, (void *)PyErr_SetInterruptEx))
        python_handler = there;
    Py_XDECREF(handler);
    Py_XDECREF(signals);
}

/* Puts `on_signal` before Python's handler of a signal. */
static void take_signal(int number) {
    struct sigaction there;
    if (sigaction(number, NULL, &there) < 0 || there.sa_flags & SA_SIGINFO)
        return;
    const Handler handler = there.sa_handler;
    if (handler == on_signal || handler == SIG_DFL || handler == SIG_IGN)
        return;
    if (python_handler == NULL)
        find_python_handler(number, handler);
    if (handler == python_handler) {
        there.sa_handler = on_signal;
        sigaction(number, &there, NULL);
    }
}

/* The same for all. Each asks the system, so all but SIGINT are looked at once in some milliseconds. */
static void take_signals(void) {
    take_signal(SIGINT);
#ifdef CLOCK_MONOTONIC_COARSE
    struct timespec now;
    if (clock_gettime(CLOCK_MONOTONIC_COARSE, &now) == 0) {
        if (now.tv_nsec == looked.tv_nsec && now.tv_sec == looked.tv_sec)
            return;
        looked = now;
    }
#endif
    for (Watched *one = watched + 1; one < watched + WATCHED; one++)
        take_signal(one->number);
}

/* Passes on what need not wait any longer, and lets Python handle it; -1 if that raises. */
static int let_come(void) {
    if (!atomic_load(&one_waits))
        return 0;
    if (!atomic_load(&held))
        atomic_store(&one_waits, 0);
    int passed = 0;
    for (Watched *one = watched; one < watched + WATCHED; one++)
        if (!is_held(one->number))
            passed |= pass_on(one);
    return passed ? PyErr_CheckSignals() : 0;
}

int signal_waits(void) { return atomic_load(&one_waits) && atomic_load(&held) && on_main_thread(); }

/* ---- The block */

static PyObject *enter(PyObject *self, PyObject *given) {
    if (on_main_thread() && atomic_fetch_add(&held, 1) == 0)
        take_signals();
    Py_RETURN_NONE;
}

static PyObject *leave(PyObject *self, PyObject *given) {
    if (!on_main_thread() || atomic_load(&held) == 0)
        Py_RETURN_NONE;
    const int outermost = atomic_fetch_sub(&held, 1) == 1;
    const int raised = let_come();
    PyObject *error = outermost ? kept : NULL;
    if (error != NULL) {
        kept = NULL;
        if (raised == 0)
            PyErr_SetObject((PyObject *)Py_TYPE(error), error);
        Py_DECREF(error);
        return NULL;
    }
    if (raised < 0)
        return NULL;
    Py_RETURN_NONE;
}

PyDoc_STRVAR(interruptible_doc, "interruptible(function): call a function; SIGINT does not wait for its end.");
static PyObject *interruptible(PyObject *module, PyObject *function) {
    if (!on_main_thread())
        return PyObject_CallNoArgs(function);
    const int before = atomic_exchange(&open_at, atomic_load(&held));
    PyObject *found = let_come() < 0 ? NULL : PyObject_CallNoArgs(function);
    atomic_store(&open_at, before);
    return found;
}

PyDoc_STRVAR(keep_doc, "keep(error): let an exception wait as a signal does. Returns whether it will be raised.");
static PyObject *keep(PyObject *module, PyObject *error) {
    if (!on_main_thread() || !atomic_load(&held))
        Py_RETURN_FALSE;
    set_field(&kept, error);
    atomic_store(&one_waits, 1);
    Py_RETURN_TRUE;
}

PyDoc_STRVAR(begin_child_doc, "begin_child(): in the child of a fork: begin with the thread that forked, in no block.");
static PyObject *begin_child(PyObject *module, PyObject *given) {
    main_thread = PyThread_get_thread_ident();
    Py_CLEAR(kept); /* it is the parent's, and raised there */
    atomic_store(&held, 0);
    atomic_store(&open_at, -1);
    atomic_store(&one_waits, 0);
    for (Watched *one = watched; one < watched + WATCHED; one++)
        atomic_store(&one->waits, 0);
    Py_RETURN_NONE;
}

static PyMethodDef held_methods[] = {
    {"__enter__", enter, METH_NOARGS, NULL}, {"__exit__", leave, METH_VARARGS, NULL}, {NULL, NULL, 0, NULL}};
static PyType_Slot held_slots[] = {{Py_tp_methods, held_methods}, {0, NULL}};
static PyType_Spec held_spec = {"tektite.kernels.call.Held", sizeof(PyObject), 0, Py_TPFLAGS_DEFAULT, held_slots};
static PyMethodDef signal_functions[] = {{"interruptible", interruptible, METH_O, interruptible_doc},
                                         {"keep", keep, METH_O, keep_doc},
                                         {"begin_child", begin_child, METH_NOARGS, begin_child_doc},
                                         {NULL, NULL, 0, NULL}};

int add_signals(PyObject *module) {
    PyObject *threading = PyImport_ImportModule("threading");
    PyObject *thread = threading == NULL ? NULL : PyObject_CallMethod(threading, "main_thread", NULL);
    PyObject *number = thread == NULL ? NULL : PyObject_GetAttrString(thread, "ident");
    main_thread = number == NULL ? 0 : PyLong_AsUnsignedLong(number);
    Py_XDECREF(threading);
    Py_XDECREF(thread);
    Py_XDECREF(number);
    if (PyErr_Occurred())
        return -1;
    PyObject *type = PyType_FromSpec(&held_spec);
    PyObject *block = type == NULL ? NULL : PyObject_CallNoArgs(type);
    const int done = block == NULL ? -1 : PyModule_AddObjectRef(module, "HELD", block);
    Py_XDECREF(type);
    Py_XDECREF(block);
    return done < 0 ? -1 : PyModule_AddFunctions(module, signal_functions);
}
