/* Kernels whose calls go to native code at once, and the module that all of it is in.
 *
 * Their type is derived from a class of Python's, and has nothing but what a call goes by. It tries
 * native code with what it is given, and arrays for results if there are some, `out`; whatever does
 * not fit that, or fails there, is a call of the class's own `__call__`. */

#include <structmember.h>

typedef struct {
    vectorcallfunc call;
    PyObject *native;   /* what is tried; a `Native`, or what gives a list or None just so */
    PyObject *pack;     /* makes of a list what a call returns; NULL where it is that already */
    PyObject *late;     /* the code whose `kept` arrays, which its first call makes, go along */
    PyObject *kept;     /* these, in a tuple; NULL before, and where there are none */
    Py_ssize_t inputs;
} Direct;

static PyObject *out_name, *borrow_name;

static Direct *direct_of(PyObject *self) {
    return (Direct *)((char *)self + Py_TYPE(self)->tp_vectorcall_offset);
}

/* Whether what is written into `x` may be seen in `y`: arrays whose elements lie in a row. */
static int may_share(PyObject *x, PyObject *y) {
    PyArrayObject *first = (PyArrayObject *)x, *second = (PyArrayObject *)y;
    const char *a = PyArray_DATA(first), *b = PyArray_DATA(second);
    return a < b + PyArray_NBYTES(second) && b < a + PyArray_NBYTES(first);
}

/* The results of native code that writes into the arrays of `out`: a list or a tuple with one, or
 * None, for each result, or the array for the only one. */
static PyObject *computed_into(Native *n, PyObject *const *args, PyObject *out) {
    PyObject *into[MOST];
    const int listed = PyList_CheckExact(out) || PyTuple_CheckExact(out);
    if (n->outputs > MOST) Py_RETURN_NONE;
    if (listed ? PySequence_Fast_GET_SIZE(out) != n->outputs : !n->alone) Py_RETURN_NONE;
    for (Py_ssize_t i = 0; i < n->inputs; i++)
        if (!PyArray_CheckExact(args[i])) Py_RETURN_NONE;
    for (Py_ssize_t k = 0; k < n->outputs; k++) {
        into[k] = listed ? PySequence_Fast_GET_ITEM(out, k) : out;
        if (into[k] == Py_None && listed) continue;
        if (!PyArray_CheckExact(into[k]) || !PyArray_IS_C_CONTIGUOUS((PyArrayObject *)into[k]))
            Py_RETURN_NONE;
        for (Py_ssize_t i = 0; i < n->inputs; i++)
            if (may_share(into[k], args[i])) Py_RETURN_NONE;
        for (Py_ssize_t i = 0; i < k; i++)
            if (into[i] != Py_None && may_share(into[k], into[i])) Py_RETURN_NONE;
    }
    return computed(n, args, into, 1);
}

/* An array of a number where one of the type is awaited; NULL for all else. */
static PyObject *number_array(PyObject *x, const Type *type) {
    if (type->axes || type->type != NPY_DOUBLE ||
        !(PyFloat_CheckExact(x) || Py_IS_TYPE(x, &PyDoubleArrType_Type)))
        return NULL;
    PyObject *made = PyArray_SimpleNew(0, NULL, NPY_DOUBLE);
    if (made == NULL)
        PyErr_Clear();
    else
        *(double *)PyArray_DATA((PyArrayObject *)made) = PyFloat_AS_DOUBLE(x);
    return made;
}

static PyObject *given_native(Native *n, PyObject *const *args, PyObject *out) {
    return out == Py_None ? computed(n, args, NULL, 0) : computed_into(n, args, out);
}

/* The results of native code for arrays, and for numbers where it takes arrays without axes. */
static PyObject *computed_with_numbers(Native *n, PyObject *const *args, PyObject *out) {
    PyObject *all[MOST], *made[MOST];
    Py_ssize_t count = 0;
    for (Py_ssize_t i = 0; i < n->inputs; i++) {
        PyObject *array = n->inputs > MOST || PyArray_CheckExact(args[i])
                              ? NULL
                              : number_array(args[i], &n->types[i]);
        if (array == NULL) continue;
        if (!count) memcpy(all, args, n->inputs * sizeof *all);
        made[count++] = all[i] = array;
    }
    for (Py_ssize_t k = 0; count && k < n->outputs; k++)
        if (n->modes[k] >= 0) out = NULL;
    PyObject *found = out == NULL ? Py_NewRef(Py_None) : given_native(n, count ? all : args, out);
    while (count > 0) Py_DECREF(made[--count]);
    return found;
}

/* What native code gives; None where it is not for that. */
static PyObject *tried(Direct *d, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    PyObject *native = d->native, *out = Py_None, *all[MOST];
    const int known = Py_IS_TYPE(native, &NativeType);
    if (count != d->inputs || (d->late != NULL && d->kept == NULL)) Py_RETURN_NONE;
    for (Py_ssize_t i = 0; names != NULL && i < PyTuple_GET_SIZE(names); i++) {
        PyObject *name = PyTuple_GET_ITEM(names, i), *value = args[count + i];
        if (name == out_name)
            out = value;
        else if (name != borrow_name || value != Py_False)
            Py_RETURN_NONE;
    }
    if (d->kept != NULL) {
        const Py_ssize_t kept = PyTuple_GET_SIZE(d->kept);
        if (count + kept > MOST) Py_RETURN_NONE;
        for (Py_ssize_t i = 0; i < count; i++) all[i] = args[i];
        for (Py_ssize_t i = 0; i < kept; i++) all[count++] = PyTuple_GET_ITEM(d->kept, i);
        args = all;
    }
    if (known && (out != Py_None || !((Native *)native)->handed))
        return computed_with_numbers((Native *)native, args, out);
    if (out != Py_None) Py_RETURN_NONE;
    return PyObject_Vectorcall(native, args, count, NULL);
}

/* Keeps what the first call has made, if it has. */
static int keep(Direct *d) {
    PyObject *made = PyObject_GetAttrString(d->late, "kept");
    if (made == NULL) return 0;
    PyObject *kept = PyList_CheckExact(made) ? PyList_AsTuple(made) : NULL;
    Py_DECREF(made);
    /* Another thread may have been here meanwhile. */
    if (d->kept == NULL)
        d->kept = kept;
    else
        Py_XDECREF(kept);
    return !PyErr_Occurred();
}

static PyObject *direct_call(PyObject *self, PyObject *const *args, size_t flags,
                             PyObject *names) {
    Direct *d = direct_of(self);
    PyObject *found = tried(d, args, PyVectorcall_NARGS(flags), names);
    if (found == NULL) return NULL;
    if (found != Py_None) {
        PyObject *pack = d->pack;
        if (pack == NULL) return found;
        PyObject *made = pack == (PyObject *)&PyTuple_Type ? PyList_AsTuple(found)
                                                           : PyObject_CallOneArg(pack, found);
        Py_DECREF(found);
        return made;
    }
    Py_DECREF(found);
    PyObject *own = PyObject_GetAttrString((PyObject *)Py_TYPE(self), "__call__");
    PyObject *bound = own == NULL ? NULL : PyMethod_New(own, self);
    PyObject *result = bound == NULL ? NULL : PyObject_Vectorcall(bound, args, flags, names);
    Py_XDECREF(bound);
    Py_XDECREF(own);
    if (result != NULL && d->late != NULL && d->kept == NULL && !keep(d)) Py_CLEAR(result);
    return result;
}

/* direct_type(class): the type derived from it. */
static PyObject *direct_type(PyObject *self, PyObject *base) {
    (void)self;
    if (!PyType_Check(base)) return PyErr_Format(PyExc_TypeError, "not a class: %R", base);
    PyTypeObject *over = (PyTypeObject *)base;
    const Py_ssize_t at = over->tp_basicsize;
    if (over->tp_itemsize || at % sizeof(void *) || over->tp_call == NULL)
        return PyErr_Format(PyExc_TypeError, "not a class of what is called: %R", base);
    PyMemberDef members[] = {
        {"__vectorcalloffset__", T_PYSSIZET, at + offsetof(Direct, call), READONLY, NULL},
        {"_native", T_OBJECT_EX, at + offsetof(Direct, native), 0, NULL},
        {"_pack", T_OBJECT_EX, at + offsetof(Direct, pack), 0, NULL},
        {"_late", T_OBJECT_EX, at + offsetof(Direct, late), 0, NULL},
        {"_kept", T_OBJECT_EX, at + offsetof(Direct, kept), 0, NULL},
        {NULL, 0, 0, 0, NULL}};
    PyType_Slot slots[] = {
        {Py_tp_members, members}, {Py_tp_call, (void *)over->tp_call}, {0, NULL}};
    PyType_Spec spec = {"primgraph.Kernel", (int)(at + sizeof(Direct)), 0,
                        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL, slots};
    PyObject *bases = PyTuple_Pack(1, base);
    PyObject *made = bases == NULL ? NULL : PyType_FromSpecWithBases(&spec, bases);
    Py_XDECREF(bases);
    if (made == NULL) return NULL;
    /* What other ways of a call go is what the class has. */
    if (PyDict_DelItemString(((PyTypeObject *)made)->tp_dict, "__call__") < 0) Py_CLEAR(made);
    if (made != NULL) PyType_Modified((PyTypeObject *)made);
    return made;
}

/* direct(kernel, native, pack, late, inputs): calls of it, which is new, go there. */
static PyObject *direct(PyObject *self, PyObject *args) {
    PyObject *kernel, *native, *pack, *late;
    Py_ssize_t inputs;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOOOn", &kernel, &native, &pack, &late, &inputs)) return NULL;
    if (!PyType_HasFeature(Py_TYPE(kernel), Py_TPFLAGS_HAVE_VECTORCALL) ||
        Py_TYPE(kernel)->tp_basicsize !=
            Py_TYPE(kernel)->tp_vectorcall_offset + (Py_ssize_t)sizeof(Direct))
        return PyErr_Format(PyExc_TypeError, "calls of %R cannot go anywhere else", kernel);
    Direct *d = direct_of(kernel);
    d->call = direct_call;
    d->native = Py_NewRef(native);
    d->pack = pack == Py_None ? NULL : Py_NewRef(pack);
    d->late = late == Py_None ? NULL : Py_NewRef(late);
    d->kept = NULL;
    d->inputs = inputs;
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {{"stop_address", stop_address, METH_O, NULL},
                                {"set_threads", set_threads, METH_O, NULL},
                                {"direct_type", direct_type, METH_O, NULL},
                                {"direct", direct, METH_VARARGS, NULL},
                                {NULL, NULL, 0, NULL}};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "primgraph_call", NULL, -1, methods,
                                    NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_primgraph_call(void) {
    import_array();
    out_name = PyUnicode_InternFromString("out");
    borrow_name = PyUnicode_InternFromString("borrow");
    if (out_name == NULL || borrow_name == NULL || PyType_Ready(&NativeType) < 0) return NULL;
    PyObject *made = PyModule_Create(&module);
    if (made != NULL && PyModule_AddObjectRef(made, "Native", (PyObject *)&NativeType) < 0)
        Py_CLEAR(made);
    PyObject *crew = PyLong_FromVoidPtr((void *)(uintptr_t)primgraph_crew);
    if (made != NULL && (crew == NULL || PyModule_AddObjectRef(made, "crew", crew) < 0))
        Py_CLEAR(made);
    Py_XDECREF(crew);
    return made;
}
