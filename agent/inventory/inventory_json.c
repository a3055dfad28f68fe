/* The tables of a NodeAccelerators object. Rows alone, but for devices: who holds a lost one stands beside it
 * in the object and in a list of its own in the struct. */
#include "agent/inventory/inventory_json.h"

#include <errno.h>
#include <float.h>
#include <string.h>

#include "base/json/json_table.h"

#define SPEED .most = DBL_MAX, .omit = true /* not negative; 0 = not known */

static json_t *encode_shares(const void *field)
{
        unsigned shares = *(const unsigned *) field;

        return shares > 1 ? json_integer(shares) : json_null();
}

static json_t *encode_milli(const void *field)
{
        unsigned shares = *(const unsigned *) field;

        return shares > 1 ? json_integer(1000 / shares) : json_null();
}

static int decode_shares(const struct json_field *at, void *field, struct err *err)
{
        int64_t shares = 0;
        int r = json_field_as_int64(at, 0, INT32_MAX, &shares, err);

        if (r == 0)
                *(unsigned *) field = (unsigned) shares;
        return r;
}

static int complete_group(const struct json_field *at, void *object, struct err *err)
{
        (void) at;
        (void) err;
        device_group_complete(object);
        return 0;
}

/* clang-format off */
#define AT(member) JSON_TABLE_AT(struct device_group, member)
static const struct json_table_row group_rows[] = {
        { "name",             JSON_TABLE_CHARS,  AT(name) },
        { "vendor",           JSON_TABLE_CHARS,  AT(vendor) },
        { "runtime",          JSON_TABLE_CHARS,  AT(runtime) },
        { "model",            JSON_TABLE_CHARS,  AT(model) },
        { "resource",         JSON_TABLE_CHARS,  AT(resource) },
        { "fabric",           JSON_TABLE_CHARS,  AT(fabric) },
        { "fabricSource",     JSON_TABLE_CHARS,  AT(fabric_source) },
        { "total",            JSON_TABLE_UINT,   AT(total), .max = INT32_MAX },
        { "healthy",          JSON_TABLE_UINT,   AT(healthy), .max = INT32_MAX },
        { "free",             JSON_TABLE_UINT,   AT(free), .max = INT32_MAX },
        { "shares",           JSON_TABLE_CUSTOM, AT(shares), .omit = true, .decode = decode_shares, .encode = encode_shares },
        { "milli",            JSON_TABLE_CUSTOM, AT(shares), .omit = true, .encode = encode_milli },
        { "tflopsBf16",       JSON_TABLE_DOUBLE, AT(tflops_bf16), SPEED },
        { "tflopsFp16",       JSON_TABLE_DOUBLE, AT(tflops_fp16), SPEED },
        { "tflopsFp32",       JSON_TABLE_DOUBLE, AT(tflops_fp32), SPEED },
        { "memoryBytes",      JSON_TABLE_UINT,   AT(memory_bytes) },
        { "estimated",        JSON_TABLE_BOOL,   AT(tflops_estimated), .omit = true },
        { "measured.kernel",  JSON_TABLE_CHARS,  AT(measured_kernel), .omit = true },
        { "measured.precision", JSON_TABLE_CHARS, AT(measured_precision), .omit = true },
        { "measured.gflops",  JSON_TABLE_DOUBLE, AT(measured_gflops), SPEED },
        { "measured.time",    JSON_TABLE_TIME,   AT(measured_usec), .omit = true },
        { .name = NULL },
};
static const struct json_table group_table = { .rows = group_rows, .size_bytes = sizeof(struct device_group),
                                               .check = complete_group };
#undef AT

/* What `usable` is when a document does not say so. */
static bool usable_by_health(enum device_health health)
{
        return health == HEALTH_HEALTHY || health == HEALTH_DEGRADED;
}

static json_t *encode_usable(const void *field)
{
        const struct device *device = field;

        return device->usable == usable_by_health(device->health) ? json_null() : json_boolean(device->usable);
}

static int decode_usable(const struct json_field *at, void *field, struct err *err)
{
        return json_field_as_bool(at, &((struct device *) field)->usable, err);
}

static json_t *encode_ordinal(const void *field)
{
        const struct device *device = field;

        return device->ordinal == device->index ? json_null() : json_integer(device->ordinal);
}

static int decode_ordinal(const struct json_field *at, void *field, struct err *err)
{
        int64_t ordinal = 0;
        int r = json_field_as_int64(at, 0, INT32_MAX, &ordinal, err);

        ((struct device *) field)->ordinal = (unsigned) ordinal;
        return r;
}

/* What a document does not say because it follows. */
static int complete_device(const struct json_field *at, void *object, struct err *err)
{
        struct device *device = object;

        (void) err;
        if (json_field_get(at, "usable").value == NULL)
                device->usable = usable_by_health(device->health);
        if (json_field_get(at, "ordinal").value == NULL)
                device->ordinal = device->index;
        return 0;
}

#define AT(member) JSON_TABLE_AT(struct device, member)
static const struct json_table_row node_row = { "", JSON_TABLE_CHARS, .size_bytes = DEVICE_NODE_BYTES };
static const struct json_table_row device_rows[] = {
        { "id",               JSON_TABLE_CHARS,  AT(id) },
        { "group",            JSON_TABLE_CHARS,  AT(group) },
        { "vendor",           JSON_TABLE_CHARS,  AT(vendor) },
        { "model",            JSON_TABLE_CHARS,  AT(model) },
        { "index",            JSON_TABLE_UINT,   AT(index), .max = INT32_MAX },
        { "ordinal",          JSON_TABLE_CUSTOM, .omit = true, .decode = decode_ordinal, .encode = encode_ordinal },
        { "pci",              JSON_TABLE_CHARS,  AT(pci) },
        { "partition",        JSON_TABLE_CHARS,  AT(partition), .omit = true },
        { "numa",             JSON_TABLE_INT,    AT(numa), .min = -1 },
        { "nodes",            JSON_TABLE_ARRAY,  AT(nodes), .element = &node_row, .count = offsetof(struct device, node_count) },
        { "memoryBytes",      JSON_TABLE_UINT,   AT(memory_bytes), .omit = true },
        { "health",           JSON_TABLE_CHOICE, AT(health), .names = device_health_names },
        { "reason",           JSON_TABLE_CHARS,  AT(reason) },
        { "message",          JSON_TABLE_CHARS,  AT(message), .omit = true },
        { "rule",             JSON_TABLE_CHARS,  AT(rule), .omit = true },
        { "usable",           JSON_TABLE_CUSTOM, .omit = true, .decode = decode_usable, .encode = encode_usable },
        { "since",            JSON_TABLE_TIME,   AT(since_usec) },
        { .name = NULL },
};
static const struct json_table device_table = { .rows = device_rows, .size_bytes = sizeof(struct device),
                                                .check = complete_device };
#undef AT
/* clang-format on */

/* @loss: the first that is not written yet; losses are in the order of the devices */
static json_t *encode_device(const struct inventory *inventory, const struct device *device, size_t *loss)
{
        json_t *object = json_table_encode(&device_table, device), *holders = NULL;

        for (; *loss < inventory->loss_count && strcmp(inventory->losses[*loss].device_id, device->id) == 0;
             (*loss)++) {
                if (holders == NULL)
                        holders = json_array();
                (void) json_array_append_new(holders, json_string(inventory->losses[*loss].pod));
        }
        if (holders != NULL)
                (void) json_object_set_new(object, "heldBy", holders);
        return object;
}

static json_t *encode_devices(const void *field)
{
        const struct inventory *inventory = field;
        json_t *devices = json_array();
        size_t loss = 0;

        for (size_t i = 0; i < inventory->device_count; i++)
                (void) json_array_append_new(devices,
                                             encode_device(inventory, &inventory->devices[i], &loss));
        return devices;
}

static int decode_holders(const struct json_field *device, const char *device_id, struct inventory *inventory,
                          struct err *err)
{
        struct json_field list;
        int r = json_field_array(device, "heldBy", LOSSES_MAX, &list, err);

        for (size_t i = 0; r == 0 && i < json_field_count(&list); i++) {
                struct json_field at = json_field_at(&list, i);
                char pod[sizeof(inventory->losses->pod)] = "";

                r = json_field_as_text(&at, pod, sizeof(pod), err);
                if (r == 0 && inventory_add_loss(inventory, device_id, pod) < 0)
                        r = json_field_error(&at, err, "is one more than %d holders", LOSSES_MAX);
                else if (r == JSON_FIELD_ABSENT)
                        r = json_field_error(&at, err, "must be a pod, NAMESPACE/NAME");
        }
        return r < 0 ? r : 0;
}

static int decode_devices(const struct json_field *at, void *field, struct err *err)
{
        struct inventory *inventory = field;
        int r = json_field_as_array(at, DEVICES_MAX, err);

        for (size_t i = 0; r == 0 && i < json_field_count(at); i++) {
                struct json_field item = json_field_at(at, i);
                struct device *device = inventory_add_device(inventory);

                if (device == NULL)
                        return err_set(err, -ENOMEM, "no memory for the inventory");
                r = json_table_decode_at(&device_table, &item, device, err);
                if (r == 0)
                        r = decode_holders(&item, device->id, inventory, err);
        }
        return r;
}

static int tidy_facts(const struct json_field *at, void *object, struct err *err)
{
        (void) at;
        (void) err;
        agent_facts_tidy(object);
        return 0;
}

/* clang-format off */
#define AT(member) JSON_TABLE_AT(struct hardware_network, member)
static const struct json_table_row network_rows[] = {
        { "name",             JSON_TABLE_CHARS,  AT(name) },
        { "kind",             JSON_TABLE_CHARS,  AT(kind) },
        { "mbps",             JSON_TABLE_UINT,   AT(mbps) },
        { .name = NULL },
};
static const struct json_table network_table = { .rows = network_rows, .size_bytes = sizeof(struct hardware_network) };
#undef AT

#define AT(member) JSON_TABLE_AT(struct hardware, member)
static const struct json_table_row hardware_rows[] = {
        { "cpuModel",         JSON_TABLE_CHARS,  AT(cpu_model) },
        { "cores",            JSON_TABLE_UINT,   AT(cores), .max = INT32_MAX },
        { "maxMhz",           JSON_TABLE_UINT,   AT(max_mhz), .max = INT32_MAX },
        { "memoryBytes",      JSON_TABLE_UINT,   AT(memory_bytes) },
        { "memoryType",       JSON_TABLE_CHARS,  AT(memory_type) },
        { "network",          JSON_TABLE_ARRAY,  AT(networks), .table = &network_table, .count = offsetof(struct hardware, network_count) },
        { .name = NULL },
};
static const struct json_table hardware_table = { .rows = hardware_rows, .size_bytes = sizeof(struct hardware) };
#undef AT

#define AT(member) JSON_TABLE_AT(struct inventory_program, member)
static const struct json_table_row program_rows[] = {
        { "runtime",          JSON_TABLE_CHARS,  AT(runtime) },
        { "sha256",           JSON_TABLE_CHARS,  AT(sha256) },
        { "speedName",        JSON_TABLE_CHARS,  AT(speed_name), .omit = true },
        { .name = NULL },
};
static const struct json_table program_table = { .rows = program_rows, .size_bytes = sizeof(struct inventory_program) };
#undef AT

#define AT(member) JSON_TABLE_AT(struct summary, member)
static const struct json_table_row summary_rows[] = {
        { "chips",            JSON_TABLE_UINT,   AT(chips) },
        { "healthy",          JSON_TABLE_UINT,   AT(healthy) },
        { "free",             JSON_TABLE_UINT,   AT(free) },
        { "models",           JSON_TABLE_CHARS,  AT(models) },
        { .name = NULL },
};
static const struct json_table summary_table = { .rows = summary_rows, .size_bytes = sizeof(struct summary) };
#undef AT

#define AT(member) JSON_TABLE_AT(struct summary_condition, member)
static const struct json_table_row condition_rows[] = {
        { "type",             JSON_TABLE_BORROWED, AT(type) },
        { "status",           JSON_TABLE_BORROWED, AT(status) },
        { "reason",           JSON_TABLE_BORROWED, AT(reason) },
        { "message",          JSON_TABLE_CHARS,  AT(message) },
        { "lastTransitionTime", JSON_TABLE_TIME, AT(since_usec) },
        { .name = NULL },
};
static const struct json_table condition_table = { .rows = condition_rows, .size_bytes = sizeof(struct summary_condition) };
#undef AT

/* What is not read again: it follows from the rest. */
struct told {
        struct summary summary;
        struct summary_condition conditions[SUMMARY_CONDITIONS];
        size_t count;
        uint64_t heard_usec;
};
#define AT(member) JSON_TABLE_AT(struct told, member)
static const struct json_table_row told_rows[] = {
        { "summary",          JSON_TABLE_OBJECT, AT(summary), .table = &summary_table },
        { "conditions",       JSON_TABLE_ARRAY,  AT(conditions), .table = &condition_table, .count = offsetof(struct told, count) },
        { "heard",            JSON_TABLE_TIME,   AT(heard_usec) },
        { .name = NULL },
};
static const struct json_table told_table = { .rows = told_rows, .size_bytes = sizeof(struct told) };
#undef AT

#define AT(member) JSON_TABLE_AT(struct agent_facts_library, member)
static const struct json_table_row library_rows[] = {
        { "vendor",           JSON_TABLE_CHARS,  AT(vendor) },
        { "state",            JSON_TABLE_CHOICE, AT(state), .names = agent_facts_states },
        { "message",          JSON_TABLE_CHARS,  AT(message), .omit = true },
        { .name = NULL },
};
static const struct json_table library_table = { .rows = library_rows, .size_bytes = sizeof(struct agent_facts_library),
                                                 .lenient = true };
#undef AT

#define AT(member) JSON_TABLE_AT(struct agent_facts_offer, member)
static const struct json_table_row offer_rows[] = {
        { "name",             JSON_TABLE_CHARS,  AT(name) },
        { "registered",       JSON_TABLE_BOOL,   AT(registered) },
        { .name = NULL },
};
static const struct json_table offer_table = { .rows = offer_rows, .size_bytes = sizeof(struct agent_facts_offer),
                                               .lenient = true };
#undef AT

/* Lenient: no inventory is refused over what nothing is decided by. */
#define AT(member) JSON_TABLE_AT(struct agent_facts, member)
static const struct json_table_row facts_rows[] = {
        { "version",          JSON_TABLE_CHARS,  AT(version), .omit = true },
        { "libraries",        JSON_TABLE_ARRAY,  AT(libraries), .omit = true, .table = &library_table, .count = offsetof(struct agent_facts, library_count) },
        { "kubelet",          JSON_TABLE_ARRAY,  AT(offers), .omit = true, .table = &offer_table, .count = offsetof(struct agent_facts, offer_count) },
        { .name = NULL },
};
static const struct json_table facts_table = { .rows = facts_rows, .size_bytes = sizeof(struct agent_facts), .lenient = true,
                                               .check = tidy_facts };
#undef AT

#define AT(member) JSON_TABLE_AT(struct inventory, member)
static const struct json_table_row inventory_rows[] = {
        { "apiVersion",       JSON_TABLE_CONSTANT, .text = "remuda.dev/v1alpha1" },
        { "kind",             JSON_TABLE_CONSTANT, .text = "NodeAccelerators" },
        { "metadata.name",    JSON_TABLE_CHARS,  AT(node) },
        { "status.generation", JSON_TABLE_UINT,  AT(generation) },
        { "status.bootID",    JSON_TABLE_CHARS,  AT(boot_id) },
        { "status.nodeClass", JSON_TABLE_CHOICE, AT(node_class), .names = node_class_names },
        { "status.pool",      JSON_TABLE_CHARS,  AT(pool) },
        { "status.planned",   JSON_TABLE_BOOL,   AT(planned), .omit = true },
        { "status.agent",     JSON_TABLE_OBJECT, AT(agent), .table = &facts_table, .omit = true },
        { "status.hardware",  JSON_TABLE_OBJECT, AT(hardware), .table = &hardware_table },
        { "status.programs",  JSON_TABLE_ARRAY,  AT(programs), .table = &program_table, .count = offsetof(struct inventory, program_count) },
        { "status.groups",    JSON_TABLE_LIST,   AT(groups), .table = &group_table, .count = offsetof(struct inventory, group_count), .max = GROUPS_MAX },
        { "status.devices",   JSON_TABLE_CUSTOM, .decode = decode_devices, .encode = encode_devices },
        { .name = NULL },
};
static const struct json_table inventory_table = { .rows = inventory_rows, .size_bytes = sizeof(struct inventory) };
#undef AT
/* clang-format on */

json_t *inventory_json_encode(const struct inventory *inventory)
{
        return json_table_encode(&inventory_table, inventory);
}

json_t *inventory_json_tell(const struct inventory *inventory, const struct summary_condition *conditions,
                            uint64_t heard_usec)
{
        struct told told = { .count = SUMMARY_CONDITIONS, .heard_usec = heard_usec };
        json_t *object = inventory_json_encode(inventory), *part;

        summary_make(inventory, &told.summary);
        memcpy(told.conditions, conditions, sizeof(told.conditions));
        for (size_t i = 0; i < SUMMARY_CONDITIONS; i++)
                if (told.conditions[i].since_usec == 0)
                        told.conditions[i].since_usec = heard_usec;
        part = json_table_encode(&told_table, &told);
        if (json_object_update(json_object_get(object, "status"), part) < 0) {
                json_decref(object);
                object = NULL;
        }
        json_decref(part);
        return object;
}

int inventory_json_decode(const json_t *object, struct inventory *ret, struct err *err)
{
        struct json_field root = json_field_root(object);
        const char *kind = "NodeAccelerators";
        struct inventory inventory;
        int r;

        inventory_init(&inventory);
        inventory_init(ret);
        if (!json_is_object(object) || json_field_string(&root, "kind", &kind, NULL) < 0 ||
            strcmp(kind, "NodeAccelerators") != 0)
                return err_set(err, -EBADMSG, "inventory: not a NodeAccelerators object");
        r = json_table_decode(&inventory_table, object, &inventory, err);
        if (r < 0) {
                inventory_free(&inventory);
                return err_wrap(err, r, "inventory");
        }
        *ret = inventory;
        return 0;
}
