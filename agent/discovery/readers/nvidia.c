/* NVIDIA. Names and UUIDs from /proc/driver/nvidia, MIG instances from its capabilities; which boards are
 * joined by NVLink follows from their form (SXM and its successors), is certain where NVSwitches are seen,
 * and is known link by link once NVML was asked (agent/probe/link_memory.h). */
#include <stdlib.h>
#include <string.h>

#include "agent/discovery/reader.h"
#include "agent/vendor/mig_profile.h"
#include "agent/vendor/rows.h"
#include "base/text.h"

#define LINKED "linked" /* every board of this form sits in an NVLink domain */

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
                sighting_set_model_name(sighting, name);
        }
        if (information_value(text, "Device Minor", value, sizeof(value)) &&
            text_parse_uint64(value, &minor) == 0 && minor < 65536)
                sighting_set_number(sighting, (unsigned) minor);
        /* Before a first client the driver shows question marks. */
        if (information_value(text, "GPU UUID", value, sizeof(value)) && text_starts_with(value, "GPU-") &&
            strchr(value, '?') == NULL)
                (void) text_copy(sighting->device.id, sizeof(sighting->device.id), value);
        if (information_value(text, "GPU Excluded", value, sizeof(value)) && strcmp(value, "Yes") == 0) {
                sighting->placement.grouped = false;
                sighting_judge(sighting, HEALTH_UNHEALTHY, "Excluded", "nvidia-driver",
                               "the driver was told to keep it out (GPU Excluded)");
        }
}

static bool has_nvswitch(const struct scan *scan)
{
        for (size_t i = 0; i < scan->pci.count; i++)
                if (scan->pci.functions[i].vendor == 0x10de &&
                    scan->pci.functions[i].class_code >> 8 == 0x0680)
                        return true;
        return false;
}

/* NVSwitches make certain what the board's form says, and a board that no table knows beside them hangs on
 * them. */
static void set_fabric(const struct scan *scan, struct sighting *sighting)
{
        if (!has_nvswitch(scan) ||
            (strcmp(sighting->kind, LINKED) != 0 && strchr(sighting->device.model, ':') == NULL))
                return;
        scan_set_fabric(&sighting->placement, "nvlink", "pci", -1, "%s", "node");
        sighting->placement.needs_company = true;
}

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

static void name_profile(const struct sighting *whole, unsigned gi, struct device *part,
                         struct scan_placement *placement)
{
        struct mig_profile profile;

        mig_profile_of(whole->function->device, whole->device.memory_bytes >> 30, gi, &profile);
        part->memory_bytes = whole->device.memory_bytes / profile.share;
        mig_profile_resource(&profile, placement->resource, sizeof(placement->resource));
        if (profile.slices == 0) {
                (void) text_format(part->partition, sizeof(part->partition), "gi%u", gi);
                return;
        }
        (void) text_copy(part->partition, sizeof(part->partition), profile.name);
        placement->tflops_bf16 = placement->tflops_bf16 * profile.slices / profile.of_slices;
        placement->tflops_fp16 = placement->tflops_fp16 * profile.slices / profile.of_slices;
        placement->tflops_fp32 = placement->tflops_fp32 * profile.slices / profile.of_slices;
}

static int add_instance(struct scan *scan, const struct sighting *whole, const char *directory, unsigned gi,
                        unsigned ci)
{
        struct sighting part = *whole;
        char path[TREE_PATH_BYTES];
        unsigned minor;

        name_profile(whole, gi, &part.device, &part.placement);
        (void) text_format(part.device.id, sizeof(part.device.id), "MIG-%.64s/%u/%u", whole->device.id, gi,
                           ci);
        if (ci > 0)
                (void) text_format(part.device.partition + strlen(part.device.partition), 8, ".ci%u", ci);
        part.placement.needs_company = false;
        scan_set_fabric(&part.placement, "none", "rule", -1, "%s-%s", whole->device.pci,
                        part.device.partition);
        sighting_add_node(scan, &part, true, "/dev/nvidia%u", whole->number);
        if (text_format(path, sizeof(path), "%s/gi%u", directory, gi) && capability_minor(scan, path, &minor))
                sighting_add_node(scan, &part, true, "/dev/nvidia-caps/nvidia-cap%u", minor);
        if (text_format(path, sizeof(path), "%s/gi%u/ci%u", directory, gi, ci) &&
            capability_minor(scan, path, &minor))
                sighting_add_node(scan, &part, true, "/dev/nvidia-caps/nvidia-cap%u", minor);
        return scan_add(scan, &part.device, &part.placement);
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
        gi_count = scan_numbers(scan->tree, directory, "gi", gis, 16);
        for (size_t i = 0; i < gi_count; i++) {
                size_t ci_count;

                (void) text_format(path, sizeof(path), "%s/gi%u", directory, gis[i]);
                ci_count = scan_numbers(scan->tree, path, "ci", cis, 8);
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
        return added != 0 ? (added < 0 ? added : 0) : sighting_add(scan, sighting);
}

const struct reader reader_nvidia = {
        .vendor = &vendor_nvidia,
        .add = add,
};
