/* Sysfs probe: counters are read, and compared with what they were. */
#include "agent/health/sysfs_probe.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "agent/vendor/vendor.h"
#include "base/cleanup.h"
#include "base/text.h"

#define LANES_MAX          32
#define CORRECTABLE_BURST  100 /* corrected errors between two looks that are no longer noise */
#define VERSION_FILE_BYTES 512
#define VERSION_ENDS       " \t\r"

struct look {
        const struct tree *tree;
        const struct agent_config *config;
        const char *pci;
        struct finding *finding;
};

static void add(const struct look *l, enum finding_level level, const char *rule, const char *reason,
                const char *message)
{
        level = agent_config_level(l->config, rule, level);
        if (level != FINDING_GOOD)
                finding_add(l->finding, level, rule, reason, "%s", message);
}

static ssize_t read_attribute(const struct look *l, const char *name, char *text, size_t text_bytes)
{
        char path[128];

        (void) text_format(path, sizeof(path), "sys/bus/pci/devices/%s/%s", l->pci, name);
        return tree_read_text(l->tree, path, text, text_bytes);
}

static bool read_lanes(const struct look *l, const char *name, uint64_t *ret)
{
        char text[32];

        return read_attribute(l, name, text, sizeof(text)) > 0 && text_parse_uint64(text, ret) == 0;
}

/* "16.0 GT/s PCIe" -> 16.0; "Unknown" -> nothing */
static bool read_speed(const struct look *l, const char *name, double *ret)
{
        char text[64];

        if (read_attribute(l, name, text, sizeof(text)) <= 0)
                return false;
        text[strcspn(text, " ")] = '\0';
        return text_parse_double(text, ret) == 0;
}

static void look_at_link(const struct look *l)
{
        double speed, promised;
        uint64_t lanes, most;
        char message[160];

        if (!read_lanes(l, "max_link_width", &most) || !read_lanes(l, "current_link_width", &lanes) ||
            most == 0 || most > LANES_MAX)
                return;
        if (lanes == 0 || lanes > LANES_MAX) {
                add(l, FINDING_BAD, "link-dead", "LinkDown", "its PCIe link is down");
                return;
        }
        if (lanes < most) {
                (void) text_format(message, sizeof(message), "its PCIe link has %llu of %llu lanes",
                                   (unsigned long long) lanes, (unsigned long long) most);
                add(l, FINDING_DEGRADED, "link-width", "LinkDegraded", message);
        }
        if (read_speed(l, "max_link_speed", &promised) && read_speed(l, "current_link_speed", &speed) &&
            speed < promised)
                add(l, FINDING_GOOD, "link-speed", "LinkSlow", "its PCIe link is slower than it could be");
}

/* The last line of an AER file: "TOTAL_ERR_FATAL 3". */
static uint64_t read_total(const struct look *l, const char *name)
{
        char text[TREE_VALUE_BYTES], *line;
        uint64_t value;

        if (read_attribute(l, name, text, sizeof(text)) <= 0)
                return 0;
        line = strstr(text, "TOTAL_ERR_");
        line = line != NULL ? strchr(line, ' ') : NULL;
        if (line == NULL)
                return 0;
        line[1 + strcspn(line + 1, " \n")] = '\0';
        return text_parse_uint64(line + 1, &value) == 0 ? value : 0;
}

/* Errors are often counted by the other end of the link: the port above is read too. */
static void read_aer(const struct look *l, struct judge_counters *c)
{
        static const char *const names[] = { "aer_dev_correctable", "aer_dev_nonfatal", "aer_dev_fatal" };
        uint64_t *const totals[] = { &c->aer_correctable, &c->aer_nonfatal, &c->aer_fatal };
        char path[TREE_PATH_BYTES], real[TREE_PATH_BYTES], *last;
        struct look port = *l;

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                *totals[i] = read_total(l, names[i]);
        (void) text_format(path, sizeof(path), "sys/bus/pci/devices/%s", l->pci);
        if (tree_realpath(l->tree, path, real, sizeof(real)) <= 0)
                return;
        last = strrchr(real, '/');
        if (last == NULL)
                return;
        *last = '\0';
        port.pci = strrchr(real, '/') != NULL ? strrchr(real, '/') + 1 : "";
        if (strncmp(port.pci, "pci", 3) == 0 || strchr(port.pci, ':') == NULL)
                return; /* a root complex, not a port */
        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                *totals[i] += read_total(&port, names[i]);
}

/* amdgpu: ras/umc_err_count holds "ue: 0\nce: 12". */
static uint64_t ras_value(const char *text, const char *key)
{
        const char *at = strstr(text, key);

        return at != NULL ? strtoull(at + strlen(key), NULL, 10) : 0;
}

static void read_ras(const struct look *l, struct judge_counters *c)
{
        static const char *const blocks[] = { "umc", "sdma", "gfx", "mmhub", "xgmi_wafl", "pcie_bif", "hdp" };
        char name[64], text[256];

        for (size_t i = 0; i < ARRAY_SIZE(blocks); i++) {
                (void) text_format(name, sizeof(name), "ras/%s_err_count", blocks[i]);
                if (read_attribute(l, name, text, sizeof(text)) <= 0)
                        continue;
                c->ras_uncorrectable += ras_value(text, "ue:");
                c->ras_correctable += ras_value(text, "ce:");
        }
}

static void look_at_bad_pages(const struct look *l)
{
        char text[TREE_VALUE_BYTES];

        if (read_attribute(l, "ras/gpu_vram_bad_pages", text, sizeof(text)) <= 0)
                return;
        if (strstr(text, " : F") != NULL)
                add(l, FINDING_BAD, "ras-bad-pages", "BadPages", "bad memory pages could not be retired");
        else if (strstr(text, " : P") != NULL)
                add(l, FINDING_DEGRADED, "ras-bad-pages", "BadPages", "bad memory pages wait to be retired");
}

static void compare(const struct look *l, const struct judge_counters *before,
                    const struct judge_counters *now)
{
        if (now->aer_fatal > before->aer_fatal)
                add(l, FINDING_BAD, "aer-fatal", "PcieFatal", "fatal PCIe errors were counted");
        if (now->aer_nonfatal > before->aer_nonfatal)
                add(l, FINDING_DEGRADED, "aer-nonfatal", "PcieErrors",
                    "uncorrected PCIe errors were counted");
        if (now->aer_correctable >= before->aer_correctable + CORRECTABLE_BURST)
                add(l, FINDING_DEGRADED, "aer-correctable", "PcieErrors",
                    "corrected PCIe errors are counted fast");
        if (now->ras_uncorrectable > before->ras_uncorrectable)
                add(l, FINDING_BAD, "ras-uncorrectable", "UncorrectableError",
                    "uncorrectable memory errors were counted");
        if (now->ras_correctable >= before->ras_correctable + CORRECTABLE_BURST)
                add(l, FINDING_DEGRADED, "ras-correctable", "CorrectableErrors",
                    "corrected memory errors are counted fast");
}

void sysfs_probe(const struct tree *tree, const struct agent_config *config, const struct device *device,
                 struct judge_counters *counters, struct finding *finding)
{
        const struct look l = { .tree = tree, .config = config, .pci = device->pci, .finding = finding };
        struct judge_counters now = { .known = true };

        if (device->pci[0] == '\0')
                return;
        look_at_link(&l);
        read_aer(&l, &now);
        read_ras(&l, &now);
        look_at_bad_pages(&l);
        if (counters->known)
                compare(&l, counters, &now);
        else if (now.ras_uncorrectable > 0)
                add(&l, FINDING_DEGRADED, "ras-uncorrectable", "UncorrectableError",
                    "uncorrectable memory errors were counted before the agent began");
        *counters = now;
}

/* "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.90.07  Fri ..." -> 550.90.07: the first word that
 * begins with a digit and has a '.'; a compiler's stands in the next line. */
static void find_version(char *text, char *ret, size_t ret_bytes)
{
        text[strcspn(text, "\n")] = '\0';
        for (const char *at = text + strspn(text, VERSION_ENDS); *at != '\0';) {
                size_t length = strcspn(at, VERSION_ENDS);

                if (isdigit((unsigned char) *at) && memchr(at, '.', length) != NULL) {
                        if (!text_format(ret, ret_bytes, "%.*s", (int) length, at))
                                ret[0] = '\0';
                        return;
                }
                at += length;
                at += strspn(at, VERSION_ENDS);
        }
}

void sysfs_probe_driver_version(const struct tree *tree, const struct device *device, char *ret,
                                size_t ret_bytes)
{
        char path[128], text[VERSION_FILE_BYTES];

        ret[0] = '\0';
        if (device->pci[0] == '\0')
                return;
        (void) text_format(path, sizeof(path), "sys/bus/pci/devices/%s/driver/module/version", device->pci);
        if (tree_read_text(tree, path, ret, ret_bytes) > 0)
                return;
        ret[0] = '\0';
        for (const struct vendor *row = vendor_find(device->vendor, NULL); row != NULL && ret[0] == '\0';
             row = vendor_find(device->vendor, row))
                if (row->version_path != NULL &&
                    tree_read_text(tree, row->version_path, text, sizeof(text)) > 0)
                        find_version(text, ret, ret_bytes);
}
