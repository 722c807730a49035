/* The floor of the warm call: saxpy as a C extension that someone wrote by hand for this one
 * signature, reading NumPy's structs directly. Its checks are those without which it could crash or
 * read wrong numbers: types, rank, byte order, layout, that the lengths agree, and that the output
 * is writeable.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#include <numpy/ndarraytypes.h>

static PyTypeObject* ndarray;

static const PyArrayObject_fields* f32_vector(PyObject* object, int flags) {
  const PyArrayObject_fields* array = (const PyArrayObject_fields*)object;
  flags |= NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED;
  if (!Py_IS_TYPE(object, ndarray) || array->nd != 1 || array->descr->type_num != NPY_FLOAT ||
      array->descr->byteorder == NPY_OPPBYTE || (array->flags & flags) != flags) {
    PyErr_SetString(PyExc_TypeError, "a one-dimensional float32 array was expected");
    return NULL;
  }
  return array;
}

static PyObject* saxpy(PyObject* module, PyObject* const* args, Py_ssize_t count) {
  (void)module;
  if (count != 4) return PyErr_Format(PyExc_TypeError, "4 arguments were expected");
  if (!PyFloat_CheckExact(args[0])) return PyErr_Format(PyExc_TypeError, "a float was expected");
  const float a = (float)PyFloat_AS_DOUBLE(args[0]);
  const PyArrayObject_fields* x = f32_vector(args[1], 0);
  if (x == NULL) return NULL;
  const PyArrayObject_fields* y = f32_vector(args[2], 0);
  if (y == NULL) return NULL;
  const PyArrayObject_fields* out = f32_vector(args[3], NPY_ARRAY_WRITEABLE);
  if (out == NULL) return NULL;
  const float* xs = (const float*)x->data;
  const float* ys = (const float*)y->data;
  float* outs = (float*)out->data;
  const npy_intp n = x->dimensions[0];
  if (y->dimensions[0] != n || out->dimensions[0] != n) {
    return PyErr_Format(PyExc_ValueError, "the arrays differ in length");
  }
  for (npy_intp i = 0; i < n; ++i) outs[i] = a * xs[i] + ys[i];
  Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"saxpy", (PyCFunction)(void (*)(void))saxpy, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "floor", NULL, -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_floor(void) {
  PyObject* numpy = PyImport_ImportModule("numpy");
  if (numpy == NULL) return NULL;
  ndarray = (PyTypeObject*)PyObject_GetAttrString(numpy, "ndarray");
  Py_DECREF(numpy);
  return ndarray == NULL ? NULL : PyModule_Create(&module);
}
