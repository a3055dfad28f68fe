#include "agent/vendor/runtime.h"

#include <stddef.h>
#include <string.h>

#include "base/cleanup.h"

/* The first row of a runtime is the one that a launcher sets; the others are passed on. */
/* clang-format off */
static const struct {
        const char *runtime, *variable;
} variables[] = {
        { "cuda",      "CUDA_VISIBLE_DEVICES" },
        { "cuda",      "NVIDIA_VISIBLE_DEVICES" },
        { "rocm",      "ROCR_VISIBLE_DEVICES" },
        { "rocm",      "HIP_VISIBLE_DEVICES" },
        { "rocm",      "GPU_DEVICE_ORDINAL" },
        { "rocm",      "AMD_VISIBLE_DEVICES" },
        { "cann",      "ASCEND_RT_VISIBLE_DEVICES" },
        { "cann",      "ASCEND_VISIBLE_DEVICES" },
        { "cambricon", "MLU_VISIBLE_DEVICES" },
        { "cambricon", "CAMBRICON_VISIBLE_DEVICES" },
        { "hygon",     "HIP_VISIBLE_DEVICES" },
        { "hygon",     "HYGON_VISIBLE_DEVICES" },
        { "mthreads",  "MUSA_VISIBLE_DEVICES" },
        { "mthreads",  "MTHREADS_VISIBLE_DEVICES" },
        { "kunlunxin", "XPU_VISIBLE_DEVICES" },
        { "enflame",   "TOPS_VISIBLE_DEVICES" },
        { "enflame",   "ENFLAME_VISIBLE_DEVICES" },
        { "habana",    "HABANA_VISIBLE_DEVICES" },
        { "habana",    "HABANA_VISIBLE_MODULES" },
        { "habana",    "HL_VISIBLE_DEVICES" },
        { "habana",    "HLS_MODULE_ID" },
        { "intel",     "ZE_AFFINITY_MASK" },
        { "intel",     "ONEAPI_DEVICE_SELECTOR" },
        { "iluvatar",  "CUDA_VISIBLE_DEVICES" },
        { "iluvatar",  "IX_VISIBLE_DEVICES" },
        { "metax",     "CUDA_VISIBLE_DEVICES" },
        { "aws",       "NEURON_RT_VISIBLE_CORES" },
        { "aws",       "AWS_NEURON_VISIBLE_DEVICES" },
        { "google",    "TPU_VISIBLE_CHIPS" },
        { "google",    "TPU_VISIBLE_DEVICES" },
        { "nec",       "VE_NODE_NUMBER" },
};

/* Of vendors whose chips have other numbers in a program's eyes than in the inventory's: passed on, never set. */
static const char *const passed_on[] = {
        "BR_VISIBLE_DEVICES", "TT_VISIBLE_DEVICES", "RBLN_DEVICES", "FURIOSA_DEVICES",
};
/* clang-format on */

const char *runtime_devices_variable(const char *runtime)
{
        for (size_t i = 0; i < ARRAY_SIZE(variables); i++)
                if (strcmp(variables[i].runtime, runtime) == 0)
                        return variables[i].variable;
        return NULL;
}

bool runtime_is_devices_variable(const char *name)
{
        for (size_t i = 0; i < ARRAY_SIZE(variables); i++)
                if (strcmp(variables[i].variable, name) == 0)
                        return true;
        for (size_t i = 0; i < ARRAY_SIZE(passed_on); i++)
                if (strcmp(passed_on[i], name) == 0)
                        return true;
        return false;
}

bool runtime_served_by(const char *runtime, const char *group_runtime)
{
        if (strcmp(runtime, group_runtime) == 0)
                return true;
        return strcmp(group_runtime, "cpu") == 0 &&
               (strcmp(runtime, "opencl") == 0 || strcmp(runtime, "sunway") == 0);
}
