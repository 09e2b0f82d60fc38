/* The way from Python into native kernels: one type whose instances are called with arrays.
 *
 * A call looks at what it is given: arrays of exactly the declared types, in row-major order, and
 * behind them those that are handed for results. For anything else it returns None, and the caller
 * converts what can be; and so it does where the computation fails, which NumPy then repeats, and
 * tells why. Other results are new arrays, or the arrays of inputs which are overwritten
 * at last. While a kernel runs, other threads may. */

#define PY_SSIZE_T_CLEAN
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#include <Python.h>
#include <numpy/arrayobject.h>
#include <stdatomic.h>
#include <stddef.h>
#include <time.h>

/* Returns 0; more than that where NumPy is to tell why it failed, less where it was stopped. */
typedef int (*Function)(void *const *arrays, char *arena);
typedef int (*Sizes)(const npy_intp *const *shapes, long *numbers);

/* In crew.c. */
void primgraph_set_threads(int count);
int primgraph_crew(int (*)(void *const *, char *, long), void *const *, char *, long, long);

typedef struct {
    int type;
    int axes;
    npy_intp *shape;     /* an extent below 0 is -1 less the place of a number */
} Type;

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    Function function;
    Py_ssize_t inputs, constants, outputs;
    Type *types;         /* of inputs, and then of outputs */
    int *places;         /* for each argument of the function: which array it is */
    int *modes;          /* for each output: HANDED, MADE, or the input that it overwrites */
    Py_ssize_t handed;
    Py_ssize_t arguments;
    PyObject *kept;      /* a tuple of constants */
    PyObject *owner;     /* what holds the library */
    Py_ssize_t arena;
    char *space;         /* of so many bytes of room */
    Py_ssize_t room;
    atomic_flag busy;
    int alone, releases;
    Sizes sizes;         /* finds numbers from shapes; where there is none, the last input has them */
    Py_ssize_t numbers;  /* how many there are */
} Native;

#define MOST 64
/* The first numbers: bytes of the arena, and elements of all arrays. */
#define ARENA 0
#define ELEMENTS 1
#define FEW 4096
#define MADE (-1)
#define HANDED (-2)

/* Whether that is an array of a type, of which some extents are not known without `z`. */
static int fits(PyObject *given, const Type *type, const long *z) {
    if (!PyArray_CheckExact(given)) return 0;
    PyArrayObject *array = (PyArrayObject *)given;
    if (PyArray_TYPE(array) != type->type || PyArray_NDIM(array) != type->axes) return 0;
    for (int i = 0; i < type->axes; i++) {
        const npy_intp n = type->shape[i];
        if (n >= 0 ? PyArray_DIM(array, i) != n : z && PyArray_DIM(array, i) != z[-1 - n]) return 0;
    }
    return PyArray_ISCARRAY_RO(array);
}

/* A new array for a result. */
static PyObject *new_array(const Type *type, const long *z) {
    npy_intp shape[NPY_MAXDIMS];
    for (int i = 0; i < type->axes; i++)
        shape[i] = type->shape[i] >= 0 ? type->shape[i] : z[-1 - type->shape[i]];
    return PyArray_SimpleNew(type->axes, shape, type->type);
}

/* The results for inputs in `args`, which have been counted. Of the results that are in `handed`,
 * or of all if it has `every` one, those that are not None there are written into these arrays. */
static PyObject *computed(Native *n, PyObject *const *args, PyObject *const *handed, int every) {
    for (Py_ssize_t i = 0; i < n->inputs; i++)
        if (!fits(args[i], &n->types[i], NULL)) Py_RETURN_NONE;
    PyObject *few[MOST], **made = few;
    void *near[4 * MOST], **given = near;
    const Py_ssize_t all = n->inputs + n->constants + n->outputs + 1;
    if (n->outputs > MOST && !(made = PyMem_Malloc(n->outputs * sizeof *made)))
        return PyErr_NoMemory();
    if (n->arguments + all > 4 * MOST &&
        !(given = PyMem_Malloc((n->arguments + all) * sizeof *given))) {
        if (made != few) PyMem_Free(made);
        return PyErr_NoMemory();
    }
    void **data = given + n->arguments;
    PyObject *result = NULL;
    char *own = NULL, *space = NULL;
    Py_ssize_t ready = 0;
    Py_ssize_t arena = n->arena;
    long *z = NULL, *numbers = NULL;
    if (n->numbers) {
        if (n->sizes) {
            numbers = PyMem_RawMalloc(n->numbers * sizeof *z);
            if (numbers == NULL) goto no_memory;
            z = numbers;
            /* Pointers to shapes lie where pointers to data will. */
            for (Py_ssize_t i = 0; i < n->inputs; i++)
                data[i] = PyArray_DIMS((PyArrayObject *)args[i]);
            if (!n->sizes((const npy_intp *const *)data, z)) {
                result = Py_NewRef(Py_None);
                goto end;
            }
        } else
            z = PyArray_DATA((PyArrayObject *)args[n->inputs - 1]);
        arena = z[ARENA];
        data[all - 1] = z;
    }
    int failed = 0;
    for (; ready < n->outputs; ready++) {
        const Type *type = &n->types[n->inputs + ready];
        const int mode = n->modes[ready];
        PyObject *target = every || mode == HANDED ? *handed++ : Py_None;
        if (mode >= 0 && target != Py_None) {
            result = Py_NewRef(Py_None);
            goto end;
        }
        if (mode >= 0 && !PyArray_ISWRITEABLE((PyArrayObject *)args[mode])) {
            result = Py_NewRef(Py_None);
            goto end;
        }
        if (target != Py_None) {
            if (!fits(target, type, z) || !PyArray_ISWRITEABLE((PyArrayObject *)target)) {
                result = Py_NewRef(Py_None);
                goto end;
            }
            made[ready] = Py_NewRef(target);
        } else {
            made[ready] = new_array(type, z);
            if (made[ready] == NULL) goto no_memory;
        }
    }
    for (Py_ssize_t i = 0; i < n->inputs; i++) data[i] = PyArray_DATA((PyArrayObject *)args[i]);
    for (Py_ssize_t i = 0; i < n->constants; i++)
        data[n->inputs + i] = PyArray_DATA((PyArrayObject *)PyTuple_GET_ITEM(n->kept, i));
    for (Py_ssize_t i = 0; i < n->outputs; i++)
        data[n->inputs + n->constants + i] = PyArray_DATA((PyArrayObject *)made[i]);
    for (Py_ssize_t i = 0; i < n->arguments; i++) given[i] = data[n->places[i]];
    const int mine = arena && !atomic_flag_test_and_set(&n->busy);
    if (arena) {
        if (mine && n->room < arena) {
            PyMem_RawFree(n->space);
            n->space = PyMem_RawMalloc(arena + 64);
            n->room = n->space == NULL ? 0 : arena;
        }
        space = mine ? n->space : (own = PyMem_RawMalloc(arena + 64));
        if (space == NULL) {
            if (mine) atomic_flag_clear(&n->busy);
            goto no_memory;
        }
        space = (char *)(((uintptr_t)space + 63) & ~(uintptr_t)63);
    }
    if (n->releases || (z != NULL && z[ELEMENTS] > FEW)) {
        Py_BEGIN_ALLOW_THREADS
        failed = n->function(given, space);
        Py_END_ALLOW_THREADS
    } else
        failed = n->function(given, space);
    if (mine) atomic_flag_clear(&n->busy);
    PyMem_RawFree(own);
    if (failed) {
        if (failed > 0) result = Py_NewRef(Py_None);
        goto end;
    }
    for (Py_ssize_t i = 0; i < n->outputs; i++)
        if (n->modes[i] >= 0) {
            PyArrayObject *target = (PyArrayObject *)args[n->modes[i]];
            memcpy(PyArray_DATA(target), PyArray_DATA((PyArrayObject *)made[i]),
                   PyArray_NBYTES(target));
            Py_SETREF(made[i], Py_NewRef((PyObject *)target));
        }
    if (n->alone) {
        result = made[0];
        ready = 0;
    } else {
        result = PyList_New(n->outputs);
        if (result != NULL) {
            for (Py_ssize_t i = 0; i < n->outputs; i++) PyList_SET_ITEM(result, i, made[i]);
            ready = 0;
        }
    }
    goto end;
no_memory:
    /* Whoever runs NumPy's kernel needs less, or tells where it fails. */
    PyErr_Clear();
    result = Py_NewRef(Py_None);
end:
    while (ready > 0) Py_XDECREF(made[--ready]);
    if (made != few) PyMem_Free(made);
    if (given != near) PyMem_Free(given);
    PyMem_RawFree(numbers);
    return result;
}

static PyObject *native_call(PyObject *self, PyObject *const *args, size_t flags,
                             PyObject *names) {
    Native *n = (Native *)self;
    if (names != NULL || PyVectorcall_NARGS(flags) != n->inputs + n->handed) Py_RETURN_NONE;
    return computed(n, args, args + n->inputs, 0);
}

static void native_dealloc(PyObject *self) {
    Native *n = (Native *)self;
    if (n->types != NULL)
        for (Py_ssize_t i = 0; i < n->inputs + n->outputs; i++) PyMem_Free(n->types[i].shape);
    PyMem_Free(n->types);
    PyMem_Free(n->places);
    PyMem_Free(n->modes);
    PyMem_RawFree(n->space);
    Py_XDECREF(n->kept);
    Py_XDECREF(n->owner);
    Py_TYPE(self)->tp_free(self);
}

/* Native(address, input types, output types, constants, places, modes, arena, alone, releases,
 * owner, address of sizes, numbers); a type is a pair of NumPy's number of it and a shape. */
static PyObject *native_new(PyTypeObject *type, PyObject *args, PyObject *named) {
    unsigned long long address, sizes;
    PyObject *inputs, *outputs, *constants, *places, *modes, *owner;
    Py_ssize_t arena, numbers;
    int alone, releases;
    if (!PyArg_ParseTuple(args, "KO!O!O!O!O!nppOKn", &address, &PyTuple_Type, &inputs, &PyTuple_Type,
                          &outputs, &PyTuple_Type, &constants, &PyTuple_Type, &places, &PyTuple_Type,
                          &modes, &arena, &alone, &releases, &owner, &sizes, &numbers))
        return NULL;
    (void)named;
    Native *n = (Native *)type->tp_alloc(type, 0);
    if (n == NULL) return NULL;
    n->call = native_call;
    n->function = (Function)(uintptr_t)address;
    n->inputs = PyTuple_GET_SIZE(inputs);
    n->outputs = PyTuple_GET_SIZE(outputs);
    n->constants = PyTuple_GET_SIZE(constants);
    n->arguments = PyTuple_GET_SIZE(places);
    n->arena = arena;
    n->alone = alone;
    n->releases = releases;
    n->sizes = (Sizes)(uintptr_t)sizes;
    n->numbers = numbers;
    n->kept = Py_NewRef(constants);
    n->owner = Py_NewRef(owner);
    atomic_flag_clear(&n->busy);
    n->types = PyMem_Calloc(n->inputs + n->outputs + 1, sizeof *n->types);
    n->places = PyMem_Calloc(n->arguments + 1, sizeof *n->places);
    n->modes = PyMem_Calloc(n->outputs + 1, sizeof *n->modes);
    if (n->types == NULL || n->places == NULL || n->modes == NULL) {
        Py_DECREF(n);
        return PyErr_NoMemory();
    }
    for (Py_ssize_t i = 0; i < n->inputs + n->outputs; i++) {
        PyObject *one = i < n->inputs ? PyTuple_GET_ITEM(inputs, i)
                                      : PyTuple_GET_ITEM(outputs, i - n->inputs);
        PyObject *shape;
        Type *t = &n->types[i];
        if (!PyArg_ParseTuple(one, "iO!", &t->type, &PyTuple_Type, &shape)) {
            Py_DECREF(n);
            return NULL;
        }
        t->axes = (int)PyTuple_GET_SIZE(shape);
        t->shape = PyMem_Calloc(t->axes + 1, sizeof *t->shape);
        if (t->shape == NULL) {
            Py_DECREF(n);
            return PyErr_NoMemory();
        }
        for (int k = 0; k < t->axes; k++) t->shape[k] = PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, k));
    }
    for (Py_ssize_t i = 0; i < n->arguments; i++)
        n->places[i] = (int)PyLong_AsLong(PyTuple_GET_ITEM(places, i));
    for (Py_ssize_t i = 0; i < n->outputs; i++) {
        n->modes[i] = (int)PyLong_AsLong(PyTuple_GET_ITEM(modes, i));
        n->handed += n->modes[i] == HANDED;
    }
    if (PyErr_Occurred()) {
        Py_DECREF(n);
        return NULL;
    }
    return (PyObject *)n;
}

/* Whether a signal's handler has raised an error, which is looked after from time to time by loops
 * that may be long. Only the main thread runs handlers, which may not have the interpreter now. */
static unsigned long main_thread;

static int stopped(void) {
    static _Thread_local long long next;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    const long long at = now.tv_sec * 1000LL + now.tv_nsec / 1000000;
    if (at < next || PyThread_get_thread_ident() != main_thread) return 0;
    next = at + 50;
    const PyGILState_STATE state = PyGILState_Ensure();
    const int found = PyErr_CheckSignals();
    PyGILState_Release(state);
    return found != 0;
}

/* The address of the function above, for a process whose main thread has that number. */
static PyObject *stop_address(PyObject *self, PyObject *number) {
    (void)self;
    main_thread = PyLong_AsUnsignedLong(number);
    return PyErr_Occurred() ? NULL : PyLong_FromVoidPtr((void *)(uintptr_t)stopped);
}

static PyObject *set_threads(PyObject *self, PyObject *count) {
    const long most = PyLong_AsLong(count);
    if (most == -1 && PyErr_Occurred()) return NULL;
    primgraph_set_threads(most > 1 << 16 ? 1 << 16 : (int)most);
    (void)self;
    Py_RETURN_NONE;
}

static PyTypeObject NativeType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "primgraph.Native",
    .tp_basicsize = sizeof(Native),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_new = native_new,
    .tp_dealloc = native_dealloc,
    .tp_vectorcall_offset = offsetof(Native, call),
    .tp_call = PyVectorcall_Call,
};
