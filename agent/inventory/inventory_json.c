#include "agent/inventory/inventory_json.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "base/timestamp.h"

/* --- writing --- */

static json_t *encode_time(uint64_t usec)
{
        char text[TIMESTAMP_BYTES];

        return json_string(timestamp_format(usec, text));
}

/* Text from a tree may hold bytes that are no UTF-8; JSON may not. */
static json_t *encode_text(const char *text)
{
        json_t *value = json_string(text);
        char plain[512];

        if (value != NULL)
                return value;
        (void) text_copy(plain, sizeof(plain), text);
        for (char *c = plain; *c != '\0'; c++)
                if ((unsigned char) *c >= 0x80)
                        *c = '?';
        return json_string(plain);
}

static void set_positive(json_t *object, const char *key, double value)
{
        if (value > 0)
                (void) json_object_set_new(object, key, json_real(value));
}

static json_t *encode_measured(const struct device_group *group)
{
        json_t *measured = json_object();

        (void) json_object_set_new(measured, "kernel", encode_text(group->measured_kernel));
        (void) json_object_set_new(measured, "gflops", json_real(group->measured_gflops));
        (void) json_object_set_new(measured, "time", encode_time(group->measured_usec));
        return measured;
}

static json_t *encode_group(const struct device_group *group)
{
        json_t *object = json_object();

        (void) json_object_set_new(object, "name", encode_text(group->name));
        (void) json_object_set_new(object, "vendor", encode_text(group->vendor));
        (void) json_object_set_new(object, "runtime", encode_text(group->runtime));
        (void) json_object_set_new(object, "model", encode_text(group->model));
        (void) json_object_set_new(object, "resource", encode_text(group->resource));
        (void) json_object_set_new(object, "fabric", encode_text(group->fabric));
        (void) json_object_set_new(object, "fabricSource", encode_text(group->fabric_source));
        (void) json_object_set_new(object, "total", json_integer(group->total));
        (void) json_object_set_new(object, "healthy", json_integer(group->healthy));
        (void) json_object_set_new(object, "free", json_integer(group->free));
        if (group->shares > 1) {
                (void) json_object_set_new(object, "shares", json_integer(group->shares));
                (void) json_object_set_new(object, "milli", json_integer(1000 / group->shares));
        }
        set_positive(object, "tflopsBf16", group->tflops_bf16);
        set_positive(object, "tflopsFp16", group->tflops_fp16);
        set_positive(object, "tflopsFp32", group->tflops_fp32);
        (void) json_object_set_new(object, "memoryBytes", json_integer((json_int_t) group->memory_bytes));
        if (group->measured_kernel[0] != '\0')
                (void) json_object_set_new(object, "measured", encode_measured(group));
        return object;
}

/* What `usable` is when a document does not say so. */
static bool usable_by_health(enum device_health health)
{
        return health == HEALTH_HEALTHY || health == HEALTH_DEGRADED;
}

/* @loss: of which the devices before this one have been passed; an inventory tells them in that order */
static json_t *encode_device(const struct inventory *inventory, const struct device *device, size_t *loss)
{
        json_t *object = json_object(), *nodes = json_array(), *holders = NULL;

        for (size_t i = 0; i < device->node_count; i++)
                (void) json_array_append_new(nodes, encode_text(device->nodes[i]));
        (void) json_object_set_new(object, "id", encode_text(device->id));
        (void) json_object_set_new(object, "group", encode_text(device->group));
        (void) json_object_set_new(object, "vendor", encode_text(device->vendor));
        (void) json_object_set_new(object, "model", encode_text(device->model));
        (void) json_object_set_new(object, "index", json_integer(device->index));
        (void) json_object_set_new(object, "pci", encode_text(device->pci));
        if (device->partition[0] != '\0')
                (void) json_object_set_new(object, "partition", encode_text(device->partition));
        (void) json_object_set_new(object, "numa", json_integer(device->numa));
        (void) json_object_set_new(object, "nodes", nodes);
        if (device->memory_bytes > 0)
                (void) json_object_set_new(object, "memoryBytes",
                                           json_integer((json_int_t) device->memory_bytes));
        (void) json_object_set_new(object, "health", json_string(device_health_name(device->health)));
        (void) json_object_set_new(object, "reason", encode_text(device->reason));
        if (device->message[0] != '\0')
                (void) json_object_set_new(object, "message", encode_text(device->message));
        if (device->rule[0] != '\0')
                (void) json_object_set_new(object, "rule", encode_text(device->rule));
        if (device->usable != usable_by_health(device->health))
                (void) json_object_set_new(object, "usable", json_boolean(device->usable));
        (void) json_object_set_new(object, "since", encode_time(device->since_usec));
        for (; *loss < inventory->loss_count && strcmp(inventory->losses[*loss].device_id, device->id) == 0;
             (*loss)++) {
                if (holders == NULL)
                        holders = json_array();
                (void) json_array_append_new(holders, encode_text(inventory->losses[*loss].pod));
        }
        if (holders != NULL)
                (void) json_object_set_new(object, "heldBy", holders);
        return object;
}

static json_t *encode_hardware(const struct hardware *hardware)
{
        json_t *object = json_object(), *networks = json_array();

        for (size_t i = 0; i < hardware->network_count; i++) {
                const struct network_interface *network = &hardware->networks[i];
                json_t *entry = json_object();

                (void) json_object_set_new(entry, "name", encode_text(network->name));
                (void) json_object_set_new(entry, "kind", encode_text(network->kind));
                (void) json_object_set_new(entry, "mbps", json_integer((json_int_t) network->mbps));
                (void) json_array_append_new(networks, entry);
        }
        (void) json_object_set_new(object, "cpuModel", encode_text(hardware->cpu_model));
        (void) json_object_set_new(object, "cores", json_integer(hardware->cores));
        (void) json_object_set_new(object, "maxMhz", json_integer(hardware->max_mhz));
        (void) json_object_set_new(object, "memoryBytes", json_integer((json_int_t) hardware->memory_bytes));
        (void) json_object_set_new(object, "memoryType", encode_text(hardware->memory_type));
        (void) json_object_set_new(object, "network", networks);
        return object;
}

static json_t *encode_programs(const struct inventory *inventory)
{
        json_t *programs = json_array();

        for (size_t i = 0; i < inventory->program_count; i++) {
                json_t *entry = json_object();

                (void) json_object_set_new(entry, "runtime", encode_text(inventory->programs[i].runtime));
                (void) json_object_set_new(entry, "sha256", encode_text(inventory->programs[i].sha256));
                (void) json_array_append_new(programs, entry);
        }
        return programs;
}

json_t *inventory_encode(const struct inventory *inventory)
{
        json_t *object = json_object(), *metadata = json_object(), *status = json_object();
        json_t *groups = json_array(), *devices = json_array();
        size_t loss = 0;

        for (size_t i = 0; i < inventory->group_count; i++)
                (void) json_array_append_new(groups, encode_group(&inventory->groups[i]));
        for (size_t i = 0; i < inventory->device_count; i++)
                (void) json_array_append_new(devices,
                                             encode_device(inventory, &inventory->devices[i], &loss));

        (void) json_object_set_new(metadata, "name", encode_text(inventory->node));
        (void) json_object_set_new(status, "generation", json_integer((json_int_t) inventory->generation));
        (void) json_object_set_new(status, "bootID", encode_text(inventory->boot_id));
        (void) json_object_set_new(status, "nodeClass", json_string(node_class_name(inventory->node_class)));
        (void) json_object_set_new(status, "pool", encode_text(inventory->pool));
        (void) json_object_set_new(status, "hardware", encode_hardware(&inventory->hardware));
        (void) json_object_set_new(status, "programs", encode_programs(inventory));
        (void) json_object_set_new(status, "groups", groups);
        (void) json_object_set_new(status, "devices", devices);

        (void) json_object_set_new(object, "apiVersion", json_string("remuda.dev/v1alpha1"));
        (void) json_object_set_new(object, "kind", json_string("NodeAccelerators"));
        (void) json_object_set_new(object, "metadata", metadata);
        if (json_object_set_new(object, "status", status) < 0) {
                json_decref(object);
                return NULL;
        }
        return object;
}

/* --- reading: each reader leaves its target alone when the key is absent or null --- */

struct reading {
        struct err *err;
        const char *what; /* "group", "device" ... */
        size_t index;
};

static int wrong(const struct reading *reading, const char *key, const char *expected)
{
        return err_set(reading->err, -EBADMSG, "inventory: %s %zu: '%s' must be %s", reading->what,
                       reading->index, key, expected);
}

static const json_t *member(const json_t *object, const char *key)
{
        const json_t *value = json_object_get(object, key);

        return json_is_null(value) ? NULL : value;
}

static int read_text(const struct reading *reading, const json_t *object, const char *key, char *field,
                     size_t field_bytes)
{
        const json_t *value = member(object, key);

        if (value == NULL)
                return 0;
        if (!json_is_string(value) || json_string_length(value) >= field_bytes ||
            strlen(json_string_value(value)) != json_string_length(value))
                return wrong(reading, key, "a string that is not too long");
        return text_copy(field, field_bytes, json_string_value(value)) ? 0 : -EBADMSG;
}

static int read_integer(const struct reading *reading, const json_t *object, const char *key, int64_t min,
                        int64_t max, int64_t *ret)
{
        const json_t *value = member(object, key);

        if (value == NULL)
                return 0;
        if (!json_is_integer(value) || json_integer_value(value) < min || json_integer_value(value) > max)
                return wrong(reading, key, "an integer in range");
        *ret = json_integer_value(value);
        return 0;
}

static int read_unsigned(const struct reading *reading, const json_t *object, const char *key, unsigned *ret)
{
        int64_t value = *ret;
        int r = read_integer(reading, object, key, 0, INT32_MAX, &value);

        *ret = (unsigned) value;
        return r;
}

static int read_bytes(const struct reading *reading, const json_t *object, const char *key, uint64_t *ret)
{
        int64_t value = (int64_t) *ret;
        int r = read_integer(reading, object, key, 0, INT64_MAX, &value);

        *ret = (uint64_t) value;
        return r;
}

static int read_real(const struct reading *reading, const json_t *object, const char *key, double *ret)
{
        const json_t *value = member(object, key);

        if (value == NULL)
                return 0;
        if (!json_is_number(value) || !(json_number_value(value) >= 0))
                return wrong(reading, key, "a number that is not negative");
        *ret = json_number_value(value);
        return 0;
}

static int read_time(const struct reading *reading, const json_t *object, const char *key, uint64_t *ret)
{
        const json_t *value = member(object, key);

        if (value == NULL)
                return 0;
        if (!json_is_string(value) || timestamp_parse(json_string_value(value), ret) < 0)
                return wrong(reading, key, "a time such as 2026-11-21T10:00:00Z");
        return 0;
}

/* The first failure of a row of readers; all of them are cheap, so none is skipped. */
static int first_failure(const int *results, size_t count)
{
        for (size_t i = 0; i < count; i++)
                if (results[i] < 0)
                        return results[i];
        return 0;
}

#define TEXT(key, field) read_text(reading, object, key, field, sizeof(field))
#define FIRST_FAILURE_OF(...)                                                                                \
        first_failure((const int[]){ __VA_ARGS__ }, sizeof((const int[]){ __VA_ARGS__ }) / sizeof(int))

static int decode_measured(const struct reading *reading, const json_t *object, struct device_group *group)
{
        if (object == NULL)
                return 0;
        if (!json_is_object(object))
                return wrong(reading, "measured", "an object");
        return FIRST_FAILURE_OF(TEXT("kernel", group->measured_kernel),
                                read_real(reading, object, "gflops", &group->measured_gflops),
                                read_time(reading, object, "time", &group->measured_usec));
}

static int decode_group(const struct reading *reading, const json_t *object, struct device_group *group)
{
        return FIRST_FAILURE_OF(TEXT("name", group->name), TEXT("vendor", group->vendor),
                                TEXT("runtime", group->runtime), TEXT("model", group->model),
                                TEXT("resource", group->resource), TEXT("fabric", group->fabric),
                                TEXT("fabricSource", group->fabric_source),
                                read_unsigned(reading, object, "total", &group->total),
                                read_unsigned(reading, object, "healthy", &group->healthy),
                                read_unsigned(reading, object, "free", &group->free),
                                read_unsigned(reading, object, "shares", &group->shares),
                                read_real(reading, object, "tflopsBf16", &group->tflops_bf16),
                                read_real(reading, object, "tflopsFp16", &group->tflops_fp16),
                                read_real(reading, object, "tflopsFp32", &group->tflops_fp32),
                                read_bytes(reading, object, "memoryBytes", &group->memory_bytes),
                                decode_measured(reading, member(object, "measured"), group));
}

static int decode_nodes(const struct reading *reading, const json_t *nodes, struct device *device)
{
        const json_t *node;
        size_t i;

        if (nodes == NULL)
                return 0;
        if (!json_is_array(nodes) || json_array_size(nodes) > DEVICE_NODES_MAX)
                return wrong(reading, "nodes", "a short array of paths");
        json_array_foreach(
                nodes, i,
                node) if (!json_is_string(node) ||
                          !text_copy(device->nodes[device->node_count++], DEVICE_NODE_BYTES,
                                     json_string_value(node))) return wrong(reading, "nodes",
                                                                            "a short array of paths");
        return 0;
}

static int decode_health(const struct reading *reading, const json_t *object, struct device *device)
{
        const json_t *health = member(object, "health"), *usable = member(object, "usable");

        if (health != NULL &&
            (!json_is_string(health) || device_health_parse(json_string_value(health), &device->health) < 0))
                return wrong(reading, "health", "healthy, degraded, unhealthy, quarantined or unknown");
        if (usable != NULL && !json_is_boolean(usable))
                return wrong(reading, "usable", "true or false");
        device->usable = usable != NULL ? json_is_true(usable) : usable_by_health(device->health);
        return 0;
}

static int decode_holders(const struct reading *reading, const json_t *holders, const char *device_id,
                          struct inventory *inventory)
{
        const json_t *holder;
        size_t i;

        if (holders == NULL)
                return 0;
        if (!json_is_array(holders))
                return wrong(reading, "heldBy", "an array of pods");
        json_array_foreach((json_t *) holders, i, holder)
        {
                const char *pod = json_string_value(holder);

                if (pod == NULL || strlen(pod) >= sizeof(inventory->losses->pod))
                        return wrong(reading, "heldBy", "an array of pods, each NAMESPACE/NAME");
                if (inventory_add_loss(inventory, device_id, pod) < 0)
                        return wrong(reading, "heldBy", "shorter");
        }
        return 0;
}

static int decode_device(const struct reading *reading, const json_t *object, struct device *device)
{
        int64_t numa = -1;
        int r = FIRST_FAILURE_OF(TEXT("id", device->id), TEXT("group", device->group),
                                 TEXT("vendor", device->vendor), TEXT("model", device->model),
                                 read_unsigned(reading, object, "index", &device->index),
                                 TEXT("pci", device->pci), TEXT("partition", device->partition),
                                 read_integer(reading, object, "numa", -1, INT32_MAX, &numa),
                                 decode_nodes(reading, member(object, "nodes"), device),
                                 read_bytes(reading, object, "memoryBytes", &device->memory_bytes),
                                 decode_health(reading, object, device), TEXT("reason", device->reason),
                                 TEXT("message", device->message), TEXT("rule", device->rule),
                                 read_time(reading, object, "since", &device->since_usec));

        device->numa = (int) numa;
        return r;
}

static int decode_network(const struct reading *reading, const json_t *object,
                          struct network_interface *network)
{
        return FIRST_FAILURE_OF(TEXT("name", network->name), TEXT("kind", network->kind),
                                read_bytes(reading, object, "mbps", &network->mbps));
}

static int decode_hardware(const json_t *object, struct hardware *hardware, struct err *err)
{
        struct reading outer = { err, "hardware", 0 }, *reading = &outer;
        const json_t *networks, *network;
        size_t i;
        int r;

        if (object == NULL)
                return 0;
        if (!json_is_object(object))
                return wrong(reading, "hardware", "an object");
        r = FIRST_FAILURE_OF(TEXT("cpuModel", hardware->cpu_model),
                             read_unsigned(reading, object, "cores", &hardware->cores),
                             read_unsigned(reading, object, "maxMhz", &hardware->max_mhz),
                             read_bytes(reading, object, "memoryBytes", &hardware->memory_bytes),
                             TEXT("memoryType", hardware->memory_type));
        networks = member(object, "network");
        if (r < 0 || networks == NULL)
                return r;
        if (!json_is_array(networks) || json_array_size(networks) > NETWORKS_MAX)
                return wrong(reading, "network", "a short array");
        json_array_foreach(networks, i, network)
        {
                struct reading inner = { err, "network", i };

                r = decode_network(&inner, network, &hardware->networks[hardware->network_count++]);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int decode_programs(const json_t *programs, struct inventory *inventory, struct err *err)
{
        const json_t *object;
        size_t i;

        if (programs == NULL)
                return 0;
        if (!json_is_array(programs) || json_array_size(programs) > PROGRAMS_MAX)
                return err_set(err, -EBADMSG, "inventory: 'programs' must be a short array");
        json_array_foreach(programs, i, object)
        {
                struct reading inner = { err, "program", i }, *reading = &inner;
                struct program_reference *program = &inventory->programs[inventory->program_count++];
                int r = FIRST_FAILURE_OF(TEXT("runtime", program->runtime), TEXT("sha256", program->sha256));

                if (r < 0)
                        return r;
        }
        return 0;
}

static int decode_groups(const json_t *groups, struct inventory *inventory, struct err *err)
{
        const json_t *object;
        size_t i;

        if (groups == NULL)
                return 0;
        if (!json_is_array(groups) || json_array_size(groups) > GROUPS_MAX)
                return err_set(err, -EBADMSG, "inventory: 'groups' must be an array of at most %d",
                               GROUPS_MAX);
        json_array_foreach(groups, i, object)
        {
                struct reading reading = { err, "group", i };
                struct device_group *group = inventory_add_group(inventory);
                int r;

                if (group == NULL)
                        return err_set(err, -ENOMEM, "no memory for the inventory");
                r = json_is_object(object) ? decode_group(&reading, object, group)
                                           : wrong(&reading, "groups", "objects");
                if (r < 0)
                        return r;
        }
        return 0;
}

static int decode_devices(const json_t *devices, struct inventory *inventory, struct err *err)
{
        const json_t *object;
        size_t i;

        if (devices == NULL)
                return 0;
        if (!json_is_array(devices) || json_array_size(devices) > DEVICES_MAX)
                return err_set(err, -EBADMSG, "inventory: 'devices' must be an array of at most %d",
                               DEVICES_MAX);
        json_array_foreach(devices, i, object)
        {
                struct reading reading = { err, "device", i };
                struct device *device = inventory_add_device(inventory);
                int r;

                if (device == NULL)
                        return err_set(err, -ENOMEM, "no memory for the inventory");
                r = json_is_object(object) ? decode_device(&reading, object, device)
                                           : wrong(&reading, "devices", "objects");
                if (r == 0)
                        r = decode_holders(&reading, member(object, "heldBy"), device->id, inventory);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int decode_status(const json_t *object, struct inventory *inventory, struct err *err)
{
        struct reading outer = { err, "status", 0 }, *reading = &outer;
        const json_t *node_class = member(object, "nodeClass");
        int r = FIRST_FAILURE_OF(read_bytes(reading, object, "generation", &inventory->generation),
                                 TEXT("bootID", inventory->boot_id), TEXT("pool", inventory->pool));

        if (r < 0)
                return r;
        if (node_class != NULL &&
            (!json_is_string(node_class) ||
             node_class_parse(json_string_value(node_class), &inventory->node_class) < 0))
                return wrong(reading, "nodeClass", "single, multi or any");
        r = decode_hardware(member(object, "hardware"), &inventory->hardware, err);
        if (r == 0)
                r = decode_programs(member(object, "programs"), inventory, err);
        if (r == 0)
                r = decode_groups(member(object, "groups"), inventory, err);
        return r == 0 ? decode_devices(member(object, "devices"), inventory, err) : r;
}

int inventory_decode(const json_t *object, struct inventory *ret, struct err *err)
{
        struct reading metadata = { err, "metadata", 0 };
        const json_t *kind = json_object_get(object, "kind"), *status = member(object, "status");
        struct inventory inventory;
        int r;

        inventory_init(&inventory);
        inventory_init(ret);
        if (!json_is_object(object) ||
            (json_is_string(kind) && strcmp(json_string_value(kind), "NodeAccelerators") != 0))
                return err_set(err, -EBADMSG, "inventory: not a NodeAccelerators object");
        if (status != NULL && !json_is_object(status))
                return err_set(err, -EBADMSG, "inventory: 'status' must be an object");
        r = read_text(&metadata, member(object, "metadata"), "name", inventory.node, sizeof(inventory.node));
        if (r == 0 && status != NULL)
                r = decode_status(status, &inventory, err);
        if (r < 0) {
                inventory_free(&inventory);
                return r;
        }
        *ret = inventory;
        return 0;
}
