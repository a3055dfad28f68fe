/* Speeds: the table, its search by the longest prefix, and by what a person wrote. */
#include "agent/vendor/speeds.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "agent/vendor/vendor.h"
#include "base/cleanup.h"

/* clang-format off */
static const struct speed speeds[] = {
        /* vendor        model                  bf16    fp16    fp32   GiB */
        { "nvidia",      "K40",                    0,      0,   4.29,   12 },
        { "nvidia",      "M40",                    0,      0,   6.84,   12 },
        { "nvidia",      "P40",                    0,      0,  11.76,   24 },
        { "nvidia",      "P100-PCIE",              0,   18.7,    9.3,   16 },
        { "nvidia",      "P100",                   0,   21.2,   10.6,   16 },
        { "nvidia",      "V100S",                  0,    130,   16.4,   32 },
        { "nvidia",      "V100-PCIE",              0,    112,   14.0,    0 },
        { "nvidia",      "V100",                   0,    125,   15.7,    0 },
        { "nvidia",      "T4",                     0,     65,    8.1,   16 },
        { "nvidia",      "A10",                  125,    125,   31.2,   24 },
        { "nvidia",      "A30",                  165,    165,   10.3,   24 },
        { "nvidia",      "A40",                  150,    150,   37.4,   48 },
        { "nvidia",      "A100",                 312,    312,   19.5,    0 },
        { "nvidia",      "A800",                 312,    312,   19.5,    0 },
        { "nvidia",      "L4",                   121,    121,   30.3,   24 },
        { "nvidia",      "L40",                  181,    181,   90.5,   48 },
        { "nvidia",      "L40S",                 362,    362,   91.6,   48 },
        { "nvidia",      "L20",                119.5,  119.5,   59.8,   48 },
        { "nvidia",      "H20",                  148,    148,     44,   96 },
        { "nvidia",      "H100-SXM",             989,    989,     67,   80 },
        { "nvidia",      "H100-PCIE",            756,    756,     51,   80 },
        { "nvidia",      "H100-NVL",             835,    835,     60,   94 },
        { "nvidia",      "H100",                 989,    989,     67,   80 },
        { "nvidia",      "H800",                 989,    989,     67,   80 },
        { "nvidia",      "H200",                 989,    989,     67,  141 },
        { "nvidia",      "GH200",                989,    989,     67,   96 },
        { "nvidia",      "B200",                2250,   2250,     75,  180 },
        { "nvidia",      "GB200",               2500,   2500,     80,  186 },
        { "nvidia",      "B300",                2250,   2250,     75,  269 },
        { "nvidia",      "GB300",               2500,   2500,     80,  278 },
        { "nvidia",      "RTX-4090",             165,    165,   82.6,   24 },
        { "nvidia",      "RTX-5090",             210,    210,  104.8,   32 },
        { "amd",         "MI100",                 92,    185,   23.1,   32 },
        { "amd",         "MI210",                181,    181,   22.6,   64 },
        { "amd",         "MI250",              191.5,  191.5,   23.9,   64 },
        { "amd",         "MI300X",              1300,   1300,  163.4,  192 },
        { "amd",         "MI300A",               980,    980,  122.6,  128 },
        { "amd",         "MI325X",              1300,   1300,  163.4,  256 },
        { "amd",         "MI350X",              2300,   2300,  144.2,  288 },
        { "amd",         "MI355X",              2500,   2500,  157.3,  288 },
        { "huawei",      "Ascend910A",             0,    256,      0,   32 },
        { "huawei",      "Ascend910B1",          400,    400,      0,   64 },
        { "huawei",      "Ascend910B2",          376,    376,      0,   64 },
        { "huawei",      "Ascend910B3",          313,    313,      0,   64 },
        { "huawei",      "Ascend910B4",          280,    280,      0,   32 },
        { "huawei",      "Ascend910B",           313,    313,      0,   64 },
        { "huawei",      "Ascend910C",           376,    376,      0,   64 },
        { "huawei",      "Ascend310P",             0,     70,      0,   24 },
        { "huawei",      "Ascend310",              0,      8,      0,    8 },
        { "cambricon",   "MLU370-X8",             96,     96,     24,   48 },
        { "cambricon",   "MLU370",                96,     96,     24,   24 },
        { "cambricon",   "MLU590",               314,    314,      0,   80 },
        { "hygon",       "Z100",                   0,   24.5,   12.2,   16 },
        { "hygon",       "K100_AI",              192,    192,      0,   64 },
        { "hygon",       "K100",                   0,    100,   24.5,   32 },
        { "kunlunxin",   "P800",                 345,    345,      0,   64 },
        { "kunlunxin",   "R200",                   0,    128,     32,   32 },
        { "biren",       "BR100",               1024,   1024,    256,   64 },
        { "biren",       "BR104",                512,    512,    128,   32 },
        { "biren",       "BR106",                192,    192,      0,   32 },
        { "metax",       "C500",                 240,    240,     36,   64 },
        { "metax",       "C550",                 280,    280,      0,   64 },
        { "iluvatar",    "BI-V100",                0,    147,     37,   32 },
        { "iluvatar",    "BI-V150",              190,    190,      0,   64 },
        { "mthreads",    "S80",                    0,      0,   14.4,   16 },
        { "mthreads",    "S3000",                  0,      0,   15.2,   32 },
        { "mthreads",    "S4000",                100,    100,     25,   48 },
        { "enflame",     "T20",                  128,    128,     32,   32 },
        { "enflame",     "S60",                    0,      0,      0,   48 },
        { "intel",       "Phi-7120",               0,      0,   2.42,   16 },
        { "intel",       "Flex-140",               0,      0,      4,    6 },
        { "intel",       "Max-1550",             298,    298,   52.4,  128 },
        { "habana",      "Gaudi2",               432,    432,      0,   96 },
        { "habana",      "Gaudi3",              1835,   1835,      0,  128 },
        { "tenstorrent", "n150",                  74,     74,      0,   12 },
        { "tenstorrent", "n300",                 131,    131,      0,   24 },
        { "tenstorrent", "p150",                 194,    194,      0,   32 },
        { "rebellions",  "ATOM-Max",               0,    128,      0,   64 },
        { "rebellions",  "REBEL",                  0,   1024,      0,  144 },
        { "google",      "TPU-v2",                45,      0,      0,   16 },
        { "google",      "TPU-v3",               123,      0,      0,   32 },
        { "google",      "TPU-v4",               275,      0,      0,   32 },
        { "google",      "TPU-v5e",              197,      0,      0,   16 },
        { "google",      "TPU-v5p",              459,      0,      0,   95 },
        { "google",      "TPU-v6e",              918,      0,      0,   32 },
        { "google",      "TPU-v7x",             2307,      0,      0,  192 },
        { "furiosa",     "RNGD",                 256,      0,      0,   48 },
        { "aws",         "Trainium1",            190,    190,   47.5,   32 },
        { "aws",         "Inferentia2",          190,    190,   47.5,   32 },
        { "aws",         "Trainium2",            667,    667,    181,   96 },
        { "aws",         "Trainium3",            670,    670,      0,  144 },
        { "graphcore",   "GC2",                    0,  124.5,   31.1,    0 },
        { "graphcore",   "GC200",                  0,    250,   62.5,    0 },
        { "nec",         "VE-10",                  0,      0,    4.9,   48 },
};
/* clang-format on */

static bool is_digit(char c)
{
        return c >= '0' && c <= '9';
}

/* "A10" begins "A10G", and not "A100". */
static bool begins(const char *row, const char *model)
{
        size_t length = strlen(row);

        return strncasecmp(row, model, length) == 0 &&
               !(is_digit(row[length - 1]) && is_digit(model[length]));
}

const struct speed *speed_find(const char *vendor, const char *model)
{
        const struct speed *best = NULL;

        for (size_t i = 0; i < ARRAY_SIZE(speeds); i++)
                if (strcmp(speeds[i].vendor, vendor) == 0 && begins(speeds[i].model, model) &&
                    (best == NULL || strlen(speeds[i].model) > strlen(best->model)))
                        best = &speeds[i];
        return best;
}

static const struct speed *find_in_vendor(const struct vendor *vendor, const char *model)
{
        for (const struct vendor_model *m = vendor->models; m != NULL && m->name != NULL; m++)
                if (strcasecmp(m->name, model) == 0)
                        return speed_find(vendor->name, m->name);
        return NULL;
}

const struct speed *speed_find_model(const char *model)
{
        const struct speed *best = NULL;

        for (size_t i = 0; i < ARRAY_SIZE(speeds); i++) {
                const char *rest = begins(speeds[i].model, model) ? model + strlen(speeds[i].model) : "x";

                if ((rest[0] == '\0' || rest[0] == '-') &&
                    (best == NULL || strlen(speeds[i].model) > strlen(best->model)))
                        best = &speeds[i];
        }
        for (size_t i = 0; best == NULL && vendors[i] != NULL; i++)
                best = find_in_vendor(vendors[i], model);
        return best;
}

size_t speed_near_models(const char *model, const char *ret[SPEED_NEAR_MAX])
{
        struct near near = { .word = model, .whole = true };

        for (size_t i = 0; i < ARRAY_SIZE(speeds); i++)
                near_consider(&near, speeds[i].model);
        memcpy(ret, near.names, near.count * sizeof(*ret));
        return near.count;
}
