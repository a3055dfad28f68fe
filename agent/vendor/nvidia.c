/* NVIDIA. Names and UUIDs from /proc/driver/nvidia, MIG instances from its capabilities; which boards are
 * joined by NVLink follows from their form (SXM and its successors), is certain where NVSwitches are seen,
 * and is known link by link once NVML was asked (links.c). */
#include <stdlib.h>
#include <string.h>

#include "agent/vendor/vendor.h"
#include "base/text.h"

#define LINKED "linked" /* every board of this form sits in an NVLink domain */

/* clang-format off */
static const struct vendor_model models[] = {
        { 0x1db1, "V100-SXM2-16GB",       16, LINKED }, { 0x1db5, "V100-SXM2-32GB",       32, LINKED },
        { 0x1db8, "V100-SXM3-32GB",       32, LINKED }, { 0x1db4, "V100-PCIE-16GB",       16, NULL },
        { 0x1db6, "V100-PCIE-32GB",       32, NULL },   { 0x1df6, "V100S-PCIE-32GB",      32, NULL },
        { 0x1eb8, "T4",                   16, NULL },
        { 0x20b0, "A100-SXM4-40GB",       40, LINKED }, { 0x20b2, "A100-SXM4-80GB",       80, LINKED },
        { 0x20b3, "A100-SXM-64GB",        64, LINKED }, { 0x20b1, "A100-PCIE-40GB",       40, NULL },
        { 0x20f1, "A100-PCIE-40GB",       40, NULL },   { 0x20b5, "A100-PCIE-80GB",       80, NULL },
        { 0x20bd, "A800-SXM4-40GB",       40, LINKED }, { 0x20f3, "A800-SXM4-80GB",       80, LINKED },
        { 0x20f5, "A800-PCIE-80GB",       80, NULL },   { 0x20f6, "A800-PCIE-40GB",       40, NULL },
        { 0x20b7, "A30",                  24, NULL },   { 0x2235, "A40",                  48, NULL },
        { 0x2236, "A10",                  24, NULL },   { 0x2237, "A10G",                 24, NULL },
        { 0x25b6, "A2",                   16, NULL },
        { 0x27b8, "L4",                   24, NULL },   { 0x27b6, "L2",                   24, NULL },
        { 0x26b5, "L40",                  48, NULL },   { 0x26b9, "L40S",                 48, NULL },
        { 0x26ba, "L20",                  48, NULL },   { 0x26b7, "L20",                  48, NULL },
        { 0x2330, "H100-SXM5-80GB",       80, LINKED }, { 0x2331, "H100-PCIE-80GB",       80, NULL },
        { 0x2338, "H100-96GB",            96, NULL },   { 0x233d, "H100-96GB",            96, NULL },
        { 0x2339, "H100-SXM5-94GB",       94, LINKED }, { 0x2321, "H100-NVL-94GB",        94, NULL },
        { 0x2324, "H800-SXM5-80GB",       80, LINKED }, { 0x2322, "H800-PCIE-80GB",       80, NULL },
        { 0x233a, "H800-NVL",             94, NULL },
        { 0x2329, "H20",                  96, LINKED }, { 0x232c, "H20-HBM3e",           141, LINKED },
        { 0x2335, "H200-SXM-141GB",      141, LINKED }, { 0x233b, "H200-NVL-141GB",      141, NULL },
        { 0x2342, "GH200-96GB",           96, LINKED }, { 0x2348, "GH200-144GB",         144, LINKED },
        { 0x2901, "B200",                180, LINKED }, { 0x2909, "B200-168GB",          168, LINKED },
        { 0x29bc, "B100",                192, LINKED }, { 0x2920, "B100",                192, LINKED },
        { 0x2941, "GB200",               186, LINKED }, { 0x3182, "B300",                270, LINKED },
        { 0x31c2, "GB300",               279, LINKED }, { 0x31c3, "GB300",               279, LINKED },
        { 0x2e12, "GB10",                  0, NULL },   { 0x2b00, "Thor",                  0, NULL },
        { 0x2bb5, "RTX-PRO-6000-BSE",     96, NULL },
        { 0x2684, "RTX-4090",             24, NULL },   { 0x2685, "RTX-4090-D",           24, NULL },
        { 0x2b85, "RTX-5090",             32, NULL },   { 0x2204, "RTX-3090",             24, NULL },
        { 0, NULL, 0, NULL },
};
/* clang-format on */

/* --- /proc/driver/nvidia --- */

/* "Key: \t\t value" of a line of the information file. */
static bool information_value(const char *text, const char *key, char *ret, size_t ret_bytes)
{
        const char *at = strstr(text, key);
        size_t length;

        if (at == NULL)
                return false;
        at += strlen(key);
        at += strspn(at, ": \t");
        length = strcspn(at, "\r\n");
        if (length == 0 || length >= ret_bytes)
                return false;
        memcpy(ret, at, length);
        ret[length] = '\0';
        return true;
}

/* The directory is named by the address, which old drivers write with another width or case. */
static bool read_information(const struct scan *scan, const struct pci_function *function, char *text,
                             size_t text_bytes)
{
        char path[TREE_PATH_BYTES];
        struct tree_names names;
        ssize_t size = -1;

        (void) text_format(path, sizeof(path), "proc/driver/nvidia/gpus/%s/information", function->address);
        if (tree_read_text(scan->tree, path, text, text_bytes) > 0)
                return true;
        if (tree_list(scan->tree, "proc/driver/nvidia/gpus", &names) < 0)
                return false;
        for (size_t i = 0; size <= 0 && i < names.count; i++) {
                uint64_t order;

                if (pci_parse_address(names.names[i], &order) == 0 && order == function->order &&
                    text_format(path, sizeof(path), "proc/driver/nvidia/gpus/%s/information", names.names[i]))
                        size = tree_read_text(scan->tree, path, text, text_bytes);
        }
        tree_names_free(&names);
        return size > 0;
}

static void use_information(struct sighting *sighting, const char *text)
{
        char value[DEVICE_MODEL_BYTES];
        uint64_t minor;

        /* "NVIDIA H100 80GB HBM3" is a better name than an id that no table knows. */
        if (strchr(sighting->device.model, ':') != NULL &&
            information_value(text, "Model", value, sizeof(value))) {
                char *name = text_starts_with(value, "NVIDIA ") ? value + strlen("NVIDIA ") : value;

                for (char *c = name; *c != '\0'; c++)
                        if (*c == ' ')
                                *c = '-';
                vendor_set_model_name(sighting, name);
        }
        if (information_value(text, "Device Minor", value, sizeof(value)) &&
            text_parse_uint64(value, &minor) == 0 && minor < 65536)
                vendor_set_number(sighting, (unsigned) minor);
        /* Before a first client the driver shows question marks. */
        if (information_value(text, "GPU UUID", value, sizeof(value)) && text_starts_with(value, "GPU-") &&
            strchr(value, '?') == NULL)
                (void) text_copy(sighting->device.id, sizeof(sighting->device.id), value);
        if (information_value(text, "GPU Excluded", value, sizeof(value)) && strcmp(value, "Yes") == 0) {
                sighting->placement.grouped = false;
                device_judge(&sighting->device, HEALTH_UNHEALTHY, "Excluded", "nvidia-driver",
                             "the driver was told to keep it out (GPU Excluded)");
        }
}

/* --- NVLink --- */

static bool has_nvswitch(const struct scan *scan)
{
        for (size_t i = 0; i < scan->pci.count; i++)
                if (scan->pci.functions[i].vendor == 0x10de &&
                    scan->pci.functions[i].class_code >> 8 == 0x0680)
                        return true;
        return false;
}

static void set_fabric(const struct scan *scan, struct sighting *sighting)
{
        bool switched = has_nvswitch(scan);

        /* A board that no table knows beside NVSwitches hangs on them. */
        if (strcmp(sighting->kind, LINKED) != 0 && !(switched && strchr(sighting->device.model, ':') != NULL))
                return;
        vendor_set_fabric(&sighting->placement, "nvlink", switched ? "pci" : "rule", -1, "%s", "node");
        sighting->placement.needs_company = true;
}

/* --- MIG --- */

/* "DeviceFileMinor: 3" of an access file names the node /dev/nvidia-caps/nvidia-cap3. */
static bool capability_minor(const struct scan *scan, const char *directory, unsigned *ret)
{
        char path[TREE_PATH_BYTES], text[256], value[32];
        uint64_t minor;

        if (!text_format(path, sizeof(path), "%s/access", directory) ||
            tree_read_text(scan->tree, path, text, sizeof(text)) <= 0 ||
            !information_value(text, "DeviceFileMinor", value, sizeof(value)) ||
            text_parse_uint64(value, &minor) < 0 || minor > 65535)
                return false;
        *ret = (unsigned) minor;
        return true;
}

/* The driver numbers GPU instances by their size: 0 the whole GPU, 1-2 half, 3-6 a quarter of the memory,
 * 7-14 an eighth (seen, not documented). Procfs does not tell the profile itself: 3g and 4g cannot be told
 * apart. */
static void name_profile(unsigned gi, const struct device *whole, struct device *part,
                         struct placement *placement)
{
        uint64_t gib = whole->memory_bytes >> 30;
        unsigned slices = gi >= 7 ? 1 : gi >= 3 ? 2 : 0, share = gi >= 7 ? 8 : gi >= 3 ? 4 : gi >= 1 ? 2 : 1;

        part->memory_bytes = whole->memory_bytes / share;
        if (gi == 0)
                slices = 7;
        if (slices == 0 || gib == 0 || gi > 14) {
                (void) text_format(part->partition, sizeof(part->partition), "gi%u", gi);
                (void) text_copy(placement->resource, sizeof(placement->resource), "nvidia.com/mig");
                return;
        }
        (void) text_format(part->partition, sizeof(part->partition), "%ug.%ugb", slices,
                           (unsigned) ((gib + share - 1) / share));
        (void) text_format(placement->resource, sizeof(placement->resource), "nvidia.com/mig-%s",
                           part->partition);
        placement->tflops_bf16 = placement->tflops_bf16 * slices / 7;
        placement->tflops_fp16 = placement->tflops_fp16 * slices / 7;
        placement->tflops_fp32 = placement->tflops_fp32 * slices / 7;
}

static int add_instance(struct scan *scan, const struct sighting *whole, const char *directory, unsigned gi,
                        unsigned ci)
{
        struct sighting part = *whole;
        char path[TREE_PATH_BYTES];
        unsigned minor;

        name_profile(gi, &whole->device, &part.device, &part.placement);
        (void) text_format(part.device.id, sizeof(part.device.id), "MIG-%.64s/%u/%u", whole->device.id, gi,
                           ci);
        if (ci > 0)
                (void) text_format(part.device.partition + strlen(part.device.partition), 8, ".ci%u", ci);
        part.placement.needs_company = false;
        vendor_set_fabric(&part.placement, "none", "rule", -1, "%s-%s", whole->device.pci,
                          part.device.partition);
        vendor_add_node(scan, &part.device, true, "/dev/nvidia%u", whole->number);
        if (text_format(path, sizeof(path), "%s/gi%u", directory, gi) && capability_minor(scan, path, &minor))
                vendor_add_node(scan, &part.device, true, "/dev/nvidia-caps/nvidia-cap%u", minor);
        if (text_format(path, sizeof(path), "%s/gi%u/ci%u", directory, gi, ci) &&
            capability_minor(scan, path, &minor))
                vendor_add_node(scan, &part.device, true, "/dev/nvidia-caps/nvidia-cap%u", minor);
        return scan_add(scan, &part.device, &part.placement);
}

static int by_number(const void *a, const void *b)
{
        const unsigned *x = a, *y = b;

        return *x < *y ? -1 : *x > *y;
}

/* Numbers, ascending, behind `prefix` among the names of a directory; at most `max`. */
static size_t numbered_names(const struct scan *scan, const char *directory, const char *prefix,
                             unsigned *ret, size_t max)
{
        struct tree_names names;
        size_t count = 0;

        if (tree_list(scan->tree, directory, &names) < 0)
                return 0;
        for (size_t i = 0; i < names.count && count < max; i++) {
                uint64_t number;

                if (text_starts_with(names.names[i], prefix) &&
                    text_parse_uint64(names.names[i] + strlen(prefix), &number) == 0 && number < 256)
                        ret[count++] = (unsigned) number;
        }
        tree_names_free(&names);
        qsort(ret, count, sizeof(*ret), by_number);
        return count;
}

/* Return: how many were added; 0 = the GPU is not divided. */
static int add_instances(struct scan *scan, const struct sighting *whole)
{
        char directory[128], path[TREE_PATH_BYTES];
        unsigned gis[16], cis[8];
        size_t gi_count;
        int added = 0;

        (void) text_format(directory, sizeof(directory), "proc/driver/nvidia/capabilities/gpu%u/mig",
                           whole->number);
        gi_count = numbered_names(scan, directory, "gi", gis, 16);
        for (size_t i = 0; i < gi_count; i++) {
                size_t ci_count;

                (void) text_format(path, sizeof(path), "%s/gi%u", directory, gis[i]);
                ci_count = numbered_names(scan, path, "ci", cis, 8);
                for (size_t j = 0; j < ci_count; j++, added++) {
                        int r = add_instance(scan, whole, directory, gis[i], cis[j]);

                        if (r < 0)
                                return r;
                }
        }
        return added;
}

static int add(struct scan *scan, struct sighting *sighting)
{
        char text[TREE_VALUE_BYTES];
        int added;

        if (read_information(scan, sighting->function, text, sizeof(text)))
                use_information(sighting, text);
        set_fabric(scan, sighting);
        added = add_instances(scan, sighting);
        return added != 0 ? (added < 0 ? added : 0) : vendor_add_one(scan, sighting);
}

const struct vendor vendor_nvidia = {
        .name = "nvidia",
        .runtime = "cuda",
        .resource = "nvidia.com/gpu",
        .unsure = "NVLink without NVSwitch follows from the board's form; MIG profiles from instance numbers",
        .pci_vendors = { 0x10de },
        .classes = { 0x0302, 0x0300 },
        .models = models,
        .foreign_drivers = { "nouveau", "nova_core" },
        .node = "/dev/nvidia{n}",
        .control_nodes = { "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools",
                           "/dev/nvidia-modeset" },
        .visible_variable = "NVIDIA_VISIBLE_DEVICES",
        .link_fabric = "nvlink",
        .link_source = "nvml",
        .add = add,
        .add_others = vendor_add_none,
};
