/* A libcusparse that multiplies on the host: its functions have the prototypes of cusparse.h. It has neither the
   algorithm 12 nor matrices of float64, and counts the products of each algorithm. */
#ifdef WITH_HEADER
#include <cusparse.h>
#else
#include <stddef.h>
#include <stdint.h>
typedef int cusparseStatus_t;
typedef int cusparseOperation_t;
typedef int cusparseIndexType_t;
typedef int cusparseIndexBase_t;
typedef int cusparseOrder_t;
typedef int cusparseSpMMAlg_t;
typedef int cudaDataType;
typedef struct stream *cudaStream_t;
typedef struct context *cusparseHandle_t;
typedef struct sparse *cusparseSpMatDescr_t;
typedef const struct sparse *cusparseConstSpMatDescr_t;
typedef struct dense *cusparseDnMatDescr_t;
typedef const struct dense *cusparseConstDnMatDescr_t;
#endif
#include <stdlib.h>

enum { SUCCESS = 0, INVALID = 3, UNSUPPORTED = 10 };
struct sparse { int64_t rows, nnz; int *offsets, *row, *column; float *values; int dtype; };
struct dense { int64_t ld, width; float *values; };

int fake_products[16];
void *fake_stream;

cusparseStatus_t cusparseCreate(cusparseHandle_t *handle) { *handle = malloc(1); return SUCCESS; }
cusparseStatus_t cusparseSetStream(cusparseHandle_t handle, cudaStream_t stream) {
    fake_stream = stream; return handle ? SUCCESS : INVALID; }

static cusparseStatus_t create(cusparseSpMatDescr_t *made, struct sparse matrix, int type, int base) {
    if (type != 2 || base != 0) return INVALID;
    *(void **)made = malloc(sizeof matrix);
    **(struct sparse **)made = matrix;
    return SUCCESS;
}

cusparseStatus_t cusparseCreateCsr(cusparseSpMatDescr_t *made, int64_t rows, int64_t columns, int64_t nnz,
                                   void *offsets, void *indices, void *values, cusparseIndexType_t type,
                                   cusparseIndexType_t other, cusparseIndexBase_t base, cudaDataType dtype) {
    if (type != other) return INVALID;
    return create(made, (struct sparse){rows, nnz, offsets, NULL, indices, values, dtype}, type, base);
}

cusparseStatus_t cusparseCreateCoo(cusparseSpMatDescr_t *made, int64_t rows, int64_t columns, int64_t nnz,
                                   void *row, void *indices, void *values, cusparseIndexType_t type,
                                   cusparseIndexBase_t base, cudaDataType dtype) {
    return create(made, (struct sparse){rows, nnz, NULL, row, indices, values, dtype}, type, base);
}

cusparseStatus_t cusparseCreateDnMat(cusparseDnMatDescr_t *made, int64_t rows, int64_t columns, int64_t ld,
                                     void *values, cudaDataType dtype, cusparseOrder_t order) {
    if (order != 2 || ld < columns) return INVALID;
    *(void **)made = malloc(sizeof(struct dense));
    **(struct dense **)made = (struct dense){ld, columns, values};
    return SUCCESS;
}

#define OPERANDS                                                                                            \
    cusparseHandle_t handle, cusparseOperation_t left, cusparseOperation_t right, const void *alpha,        \
    cusparseConstSpMatDescr_t a, cusparseConstDnMatDescr_t b, const void *beta, cusparseDnMatDescr_t c,     \
    cudaDataType dtype, cusparseSpMMAlg_t algorithm

static cusparseStatus_t status_of(const struct sparse *a, int left, int right, int dtype, int algorithm) {
    int is_coo = algorithm == 1 || algorithm == 2 || algorithm == 3 || algorithm == 5;
    if (left || right || dtype != a->dtype) return INVALID;
    if (dtype != 0 || algorithm == 12) return UNSUPPORTED;
    return algorithm == 0 || is_coo == !a->offsets ? SUCCESS : INVALID;
}

cusparseStatus_t cusparseSpMM_bufferSize(OPERANDS, size_t *size) {
    *size = 16;
    return status_of((const struct sparse *)a, left, right, dtype, algorithm);
}

cusparseStatus_t cusparseSpMM_preprocess(OPERANDS, void *buffer) {
    const struct sparse *matrix = (const struct sparse *)a;
    return matrix->offsets ? status_of(matrix, left, right, dtype, algorithm) : UNSUPPORTED;
}

cusparseStatus_t cusparseSpMM(OPERANDS, void *buffer) {
    const struct sparse *matrix = (const struct sparse *)a;
    const struct dense *from = (const struct dense *)b, *to = (const struct dense *)c;
    cusparseStatus_t status = status_of(matrix, left, right, dtype, algorithm);
    if (status || !buffer) return status ? status : INVALID;
    for (int64_t at = 0; at < matrix->rows * to->ld; at++) to->values[at] *= *(const float *)beta;
    for (int64_t row = 0, at = 0; at < matrix->nnz; at++) {
        if (matrix->row) row = matrix->row[at];
        else while (at >= matrix->offsets[row + 1]) row++;
        for (int64_t k = 0; k < to->width; k++)
            to->values[row * to->ld + k] += *(const float *)alpha * matrix->values[at]
                                            * from->values[matrix->column[at] * from->ld + k];
    }
    fake_products[algorithm]++;
    return SUCCESS;
}
