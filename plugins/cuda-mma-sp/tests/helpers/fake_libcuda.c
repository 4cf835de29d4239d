/* A libcuda whose functions have the prototypes of cuda.h, and pass their arguments to a function of the test:
   the name, the arguments as integers, and places for what the function stores. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#ifdef WITH_HEADER
#include <cuda.h>
#else
#include <stddef.h>
typedef int CUresult;
typedef int CUdevice;
typedef int CUdevice_attribute;
typedef int CUfunction_attribute;
typedef unsigned long long CUdeviceptr;
typedef struct context *CUcontext;
typedef struct module *CUmodule;
typedef struct function *CUfunction;
typedef struct stream *CUstream;
typedef struct event *CUevent;
typedef unsigned long long cuuint64_t;
typedef int CUdriverProcAddressQueryResult;
#endif
typedef unsigned long long word;
typedef int (*handler_type)(const char *, const word *, word *);

static handler_type handler;
void fake_set_handler(handler_type function) { handler = function; }

#define CALL(name, ...)                                       \
    word stored[2] = {0, 0};                                  \
    const word passed[] = {0, ##__VA_ARGS__};                 \
    int status = handler ? handler(name, passed + 1, stored) : 100;

CUresult cuInit(unsigned int flags) { CALL("cuInit", flags) return status; }
CUresult cuDriverGetVersion(int *version) { CALL("cuDriverGetVersion") *version = stored[0]; return status; }
CUresult cuDeviceGetCount(int *count) { CALL("cuDeviceGetCount") *count = stored[0]; return status; }
CUresult cuDeviceGet(CUdevice *device, int number) { CALL("cuDeviceGet", number) *device = stored[0]; return status; }
CUresult cuDeviceGetName(char *text, int size, CUdevice device) {
    CALL("cuDeviceGetName", device)
    const char *name = "Fake GPU";
    int at = 0;
    for (; at + 1 < size && name[at]; at++) text[at] = name[at];
    text[at] = 0;
    return status;
}
CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
    CALL("cuDeviceGetAttribute", attribute, device) *value = stored[0]; return status; }
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
    CALL("cuDevicePrimaryCtxRetain", device) *context = (CUcontext)stored[0]; return status; }
CUresult cuCtxPushCurrent_v2(CUcontext context) { CALL("cuCtxPushCurrent", (word)context) return status; }
CUresult cuCtxPopCurrent_v2(CUcontext *context) { CALL("cuCtxPopCurrent") *context = (CUcontext)stored[0]; return status; }
CUresult cuCtxSynchronize(void) { CALL("cuCtxSynchronize") return status; }
CUresult cuMemGetInfo_v2(size_t *free, size_t *total) {
    CALL("cuMemGetInfo") *free = stored[0]; *total = stored[1]; return status; }
CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t size) { CALL("cuMemAlloc", size) *address = stored[0]; return status; }
CUresult cuMemFree_v2(CUdeviceptr address) { CALL("cuMemFree", address) return status; }
CUresult cuMemHostAlloc(void **address, size_t size, unsigned int flags) {
    CALL("cuMemHostAlloc", size, flags) *address = (void *)stored[0]; return status; }
CUresult cuMemFreeHost(void *address) { CALL("cuMemFreeHost", (word)address) return status; }
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t size, CUstream stream) {
    CALL("cuMemcpyHtoDAsync", to, (word)from, size, (word)stream) return status; }
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) {
    CALL("cuMemcpyDtoDAsync", to, from, size, (word)stream) return status; }
CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t size, CUstream stream) {
    CALL("cuMemcpyDtoHAsync", (word)to, from, size, (word)stream) return status; }
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t size, CUstream stream) {
    CALL("cuMemsetD8Async", to, value, size, (word)stream) return status; }
CUresult cuModuleLoadData(CUmodule *module, const void *image) {
    CALL("cuModuleLoadData", (word)image) *module = (CUmodule)stored[0]; return status; }
CUresult cuModuleUnload(CUmodule module) { CALL("cuModuleUnload", (word)module) return status; }
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
    CALL("cuModuleGetFunction", (word)module, (word)name) *function = (CUfunction)stored[0]; return status; }
CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function) {
    CALL("cuFuncGetAttribute", attribute, (word)function) *value = stored[0]; return status; }
CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
    CALL("cuFuncSetAttribute", (word)function, attribute, value) return status; }
CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                        unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared,
                        CUstream stream, void **parameters, void **extra) {
    CALL("cuLaunchKernel", (word)function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared,
         (word)stream, (word)parameters, (word)extra) return status; }
CUresult cuStreamSynchronize(CUstream stream) { CALL("cuStreamSynchronize", (word)stream) return status; }
CUresult cuEventCreate(CUevent *event, unsigned int flags) {
    CALL("cuEventCreate", flags) *event = (CUevent)stored[0]; return status; }
CUresult cuEventRecord(CUevent event, CUstream stream) {
    CALL("cuEventRecord", (word)event, (word)stream) return status; }
CUresult cuEventSynchronize(CUevent event) { CALL("cuEventSynchronize", (word)event) return status; }
CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end) {
    CALL("cuEventElapsedTime", (word)start, (word)end) *milliseconds = stored[0]; return status; }
CUresult cuEventDestroy_v2(CUevent event) { CALL("cuEventDestroy", (word)event) return status; }
CUresult cuGetErrorName(CUresult error, const char **text) {
    CALL("cuGetErrorName", error) *text = (const char *)stored[0]; return status; }
CUresult cuGetErrorString(CUresult error, const char **text) {
    CALL("cuGetErrorString", error) *text = (const char *)stored[0]; return status; }

/* cuda.bindings looks up functions by this one, by names without a version: the newest are meant. */
CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *result) {
    char newest[64];
    snprintf(newest, sizeof newest, "%s_v2", symbol);
    *function = dlsym(RTLD_DEFAULT, newest);
    if (!*function) *function = dlsym(RTLD_DEFAULT, symbol);
    if (result) *result = !*function;
    return 0;
}
