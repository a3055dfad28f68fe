/* Reads device kinds from NAME[=TFLOPS[,GIB]][*N] and from the inventories of machines. */
#include "planner/commands/given_devices.h"

#include <errno.h>
#include <string.h>

#include "agent/inventory/inventory_json.h"
#include "agent/vendor/speeds.h"
#include "base/json/json_field.h"
#include "base/text.h"
#include "planner/commands/plan.h"

static double peak_of(double bf16, double fp16, double fp32)
{
        return bf16 > 0 ? bf16 : fp16 > 0 ? fp16 : fp32;
}

static int refuse(const char *text, const char *name, struct err *err)
{
        const char *near[SPEED_NEAR_MAX];
        char names[SPEED_NEAR_MAX * 40] = "";
        size_t count = speed_near_models(name, near);

        for (size_t i = 0; i < count; i++)
                (void) text_format(names + strlen(names), sizeof(names) - strlen(names), "%s, ", near[i]);
        return err_set(err, -EINVAL,
                       "--devices %.60s: '%s' is not in the device table; give %s%sits peak: %s=TFLOPS", text,
                       name, names, count > 0 ? "or " : "", name);
}

/* "H100-SXM*8", "mychip=120,32*4". */
static int parse_device(const char *text, struct network_estimate_device *ret, struct err *err)
{
        const char *star = strrchr(text, '*'), *equals = strchr(text, '=');
        size_t name_size = equals != NULL ? (size_t) (equals - text)
                           : star != NULL ? (size_t) (star - text)
                                          : strlen(text);
        struct network_estimate_device device = { .count = 1 };
        const struct speed *known;
        char peak[64] = "", *comma;
        double gib = 0;

        if (!text_format(device.name, sizeof(device.name), "%.*s", (int) name_size, text) || name_size == 0)
                return err_set(err, -EINVAL, "--devices %.60s: give NAME[=TFLOPS[,GIB]][*N]", text);
        if (star != NULL && (text_parse_uint64(star + 1, &device.count) < 0 || device.count > 65536))
                return err_set(err, -EINVAL, "--devices %.60s: '*' is followed by a count up to 65536", text);
        if (equals != NULL) {
                size_t size =
                        star != NULL && star > equals ? (size_t) (star - equals) - 1 : strlen(equals + 1);

                if (!text_format(peak, sizeof(peak), "%.*s", (int) size, equals + 1))
                        return err_set(err, -EINVAL, "--devices %.60s: '=' is followed by TFLOPS[,GIB]",
                                       text);
                comma = strchr(peak, ',');
                if (comma != NULL)
                        *comma = '\0';
                if (text_parse_double(peak, &device.tflops) < 0 ||
                    !(device.tflops >= 1e-6 && device.tflops <= 1e9) ||
                    (comma != NULL && (text_parse_double(comma + 1, &gib) < 0 || !(gib >= 0 && gib <= 1e6))))
                        return err_set(err, -EINVAL,
                                       "--devices %.60s: '=' is followed by TFLOPS[,GIB], above 0", text);
                device.memory_bytes = (uint64_t) (gib * (double) (1 << 30));
                *ret = device;
                return 0;
        }
        known = speed_find_model(device.name);
        if (known == NULL || peak_of(known->bf16, known->fp16, known->fp32) <= 0)
                return refuse(text, device.name, err);
        device.tflops = peak_of(known->bf16, known->fp16, known->fp32);
        device.memory_bytes = (uint64_t) known->gib << 30;
        *ret = device;
        return 0;
}

static int add_group(const struct device_group *group, struct network_estimate_device *devices, size_t *count,
                     struct err *err)
{
        const char *name = group->model[0] != '\0' ? group->model : group->name;
        double tflops = peak_of(group->tflops_bf16, group->tflops_fp16, group->tflops_fp32);
        size_t i = 0;

        if (group->tflops_estimated) /* processors stand beside chips where somebody measured them */
                tflops = 0;
        if (group->measured_gflops > 0 && tflops <= 0)
                tflops = group->measured_gflops / 1000;
        if (tflops <= 0 || group->healthy == 0)
                return 0; /* nothing to reckon with */
        while (i < *count && strcmp(devices[i].name, name) != 0)
                i++;
        if (i == GIVEN_DEVICES_MAX)
                return err_set(err, -E2BIG, "more than %d kinds of devices", GIVEN_DEVICES_MAX);
        if (i == *count) {
                devices[(*count)++] = (struct network_estimate_device){ .tflops = tflops,
                                                                        .memory_bytes = group->memory_bytes };
                (void) text_copy(devices[i].name, sizeof(devices[i].name), name);
        }
        devices[i].count += group->healthy;
        return 0;
}

static int add_machine(const json_t *object, struct network_estimate_device *devices, size_t *count,
                       struct err *err)
{
        struct inventory inventory;
        int r = inventory_json_decode(object, &inventory, err);

        if (r < 0)
                return r;
        for (size_t i = 0; r == 0 && i < inventory.group_count; i++)
                r = add_group(&inventory.groups[i], devices, count, err);
        inventory_free(&inventory);
        return r;
}

static int add_machines(const char *file, struct network_estimate_device *devices, size_t *count,
                        struct err *err)
{
        struct json_field root, items;
        json_t *json = NULL;
        int r = plan_read_json(file, &json, err);

        if (r < 0)
                return err_wrap(err, r, "%s", file);
        root = json_field_root(json);
        items = json_is_array(json) ? root : json_field_get(&root, "items");
        if (json_is_array(items.value))
                for (size_t i = 0; r == 0 && i < json_field_count(&items); i++)
                        r = add_machine(json_field_at(&items, i).value, devices, count, err);
        else
                r = add_machine(json, devices, count, err);
        json_decref(json);
        if (r < 0)
                return err_wrap(err, r, "%s", file);
        return *count > 0 ? 0 : err_set(err, -EINVAL, "%s: has no usable device whose peak is known", file);
}

int given_devices_collect(const struct option_list *given, const char *machines,
                          struct network_estimate_device *devices, size_t *ret_count, struct err *err)
{
        size_t count = 0;
        int r = 0;

        if (machines != NULL)
                r = add_machines(machines, devices, &count, err);
        for (size_t i = 0; r == 0 && i < given->count; i++) {
                if (count == GIVEN_DEVICES_MAX)
                        return err_set(err, -E2BIG, "--devices: more than %d kinds", GIVEN_DEVICES_MAX);
                r = parse_device(given->items[i], &devices[count], err);
                for (size_t j = 0; r == 0 && j < count; j++)
                        if (strcmp(devices[j].name, devices[count].name) == 0)
                                return err_set(err, -EINVAL, "--devices %s: stands twice; give *N instead",
                                               devices[j].name);
                count++;
        }
        *ret_count = count;
        return r;
}
