/* Labels, annotations and status of a Pod, and what a Node allows, field by field. */
#include "scheduler-extender/wire/pod_json.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json/json_table.h"
#include "base/quantity.h"
#include "base/text.h"
#include "base/timestamp.h"
#include "scheduler-extender/groups/groups.h"
#include "scheduler-extender/ledger/ledger_chips.h"
#include "scheduler-extender/ledger/ledger_nodes.h"
#include "scheduler-extender/ledger/ledger_pods.h"
#include "scheduler-extender/wire/pod_chips.h"
#include "scheduler-extender/wire/pod_needs.h"

static int decode_flag(const struct json_field *at, void *field, struct err *err)
{
        const char *text = "";
        int r = json_field_as_string(at, &text, err);

        if (r != 0)
                return r;
        if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
                return json_field_error(at, err, "must be \"true\" or \"false\", not \"%s\"", text);
        *(bool *) field = strcmp(text, "true") == 0;
        return 0;
}

static int decode_number(const struct json_field *at, uint64_t max, uint32_t *ret, struct err *err)
{
        const char *text = "";
        uint64_t value = 0;
        int r = json_field_as_string(at, &text, err);

        if (r != 0)
                return r;
        if (text_parse_uint64(text, &value) < 0 || value < 1 || value > max)
                return json_field_error(at, err, "must be a whole number in 1..%llu, not \"%s\"",
                                        (unsigned long long) max, text);
        *ret = (uint32_t) value;
        return 0;
}

static int decode_uint32(const struct json_field *at, void *field, struct err *err)
{
        return decode_number(at, UINT32_MAX, field, err);
}

static int decode_gang_size(const struct json_field *at, void *field, struct err *err)
{
        return decode_number(at, REQUEST_GANG_MAX, field, err);
}

/* A size in bytes, as a quantity ("2Gi"). */
static int decode_bytes(const struct json_field *at, void *field, struct err *err)
{
        const char *text = "";
        int64_t value = 0;
        int r = json_field_as_string(at, &text, err);

        if (r != 0)
                return r;
        if (quantity_parse(text, &value) < 0 || value < 0 || value > (int64_t) 1 << 50)
                return json_field_error(at, err, "must be a size such as 2Gi, not \"%s\"", text);
        *(uint64_t *) field = (uint64_t) value;
        return 0;
}

static int decode_placement(const struct json_field *at, void *field, struct err *err)
{
        enum placement placement;
        const char *text = "";
        int r = json_field_as_string(at, &text, err);

        if (r != 0)
                return r;
        if (placement_parse(text, &placement) < 0)
                return json_field_error(at, err,
                                        "must be packed, uniform, largest-free or fastest, not \"%s\"", text);
        *(uint8_t *) field = (uint8_t) placement;
        return 0;
}

static int decode_role(const struct json_field *at, void *field, struct err *err)
{
        const char *role = "";
        int r = json_field_as_string(at, &role, err);

        *(bool *) field = strcmp(role, "server") == 0 || strcmp(role, "manager") == 0;
        return r;
}

/* Written by our own controller: what cannot be read is none. */
static int decode_weight(const struct json_field *at, void *field, struct err *err)
{
        const char *text = "";

        (void) err;
        if (json_field_as_string(at, &text, NULL) == 0)
                (void) text_parse_double(text, field);
        return 0;
}

static int decode_share(const struct json_field *at, void *field, struct err *err)
{
        (void) err;
        (void) decode_number(at, UINT32_MAX, field, NULL);
        return 0;
}

#define DELETION_UNREAD UINT64_MAX

/* Whatever stands there, it goes. */
static int decode_deletion(const struct json_field *at, void *field, struct err *err)
{
        uint64_t *usec = field;
        const char *text = "";

        (void) err;
        if (json_is_array(at->value) && json_array_size(at->value) == 0)
                return 0;
        if (json_field_as_string(at, &text, NULL) != 0 || timestamp_parse(text, usec) < 0 || *usec == 0)
                *usec = DELETION_UNREAD;
        return 0;
}

static int decode_saves(const struct json_field *at, void *field, struct err *err)
{
        const char *text = "";
        int r = json_field_as_string(at, &text, err);

        if (r != 0)
                return r;
        if (strcmp(text, "on-sigterm") != 0)
                return json_field_error(at, err, "must be on-sigterm, not \"%s\"", text);
        *(bool *) field = true;
        return 0;
}

/* Written by our own bind, and known from the first: "true" or nothing. */
static int decode_borrowed(const struct json_field *at, void *field, struct err *err)
{
        (void) err;
        *(bool *) field = json_is_string(at->value) && strcmp(json_string_value(at->value), "true") == 0;
        return 0;
}

static int decode_gates(const struct json_field *at, void *field, struct err *err)
{
        (void) err;
        *(bool *) field = json_array_size(at->value) > 0; /* 0 where it is no list */
        return 0;
}

static int decode_deadline(const struct json_field *at, void *field, struct err *err)
{
        struct request *request = field;
        int64_t deadline = 0;
        int r = json_field_as_int64(at, 0, INT64_MAX, &deadline, err);

        if (deadline > 0) {
                request->deadline_sec = deadline < UINT32_MAX ? (uint32_t) deadline : UINT32_MAX;
                request->deadline_kept = true;
        }
        return r;
}

/* clang-format off */
#define AT(member)   JSON_TABLE_AT(struct ledger_pod_facts, member)
#define BY(decode_)  .decode = decode_
#define TABLE(rows_) { .rows = (rows_), .size_bytes = sizeof(struct ledger_pod_facts), .literal = true }
static const struct json_table_row metadata_rows[] = {
        { "name",                       JSON_TABLE_BORROWED, AT(name), .min = 1, .required = true },
        { "namespace",                  JSON_TABLE_BORROWED, AT(namespace_) },
        { "uid",                        JSON_TABLE_BORROWED, AT(uid) },
        { "creationTimestamp",          JSON_TABLE_TIME,     AT(created_usec) },
        { "deletionTimestamp",          JSON_TABLE_CUSTOM,   AT(deletion_usec), BY(decode_deletion) },
        { .name = NULL },
};
static const struct json_table_row label_rows[] = {
        { POD_LABEL_JOB,                JSON_TABLE_BORROWED, AT(job) },
        { POD_LABEL_PREEMPTIBLE,        JSON_TABLE_CUSTOM,   AT(request.preemptible), BY(decode_flag) },
        { POD_LABEL_SAME_GROUP,         JSON_TABLE_CUSTOM,   AT(request.same_group), BY(decode_flag) },
        { POD_LABEL_EQUAL_NODES,        JSON_TABLE_CUSTOM,   AT(request.equal_nodes), BY(decode_flag) },
        { POD_LABEL_GANG_SIZE,          JSON_TABLE_CUSTOM,   AT(request.gang_size), BY(decode_gang_size) },
        { POD_LABEL_MAX_SECONDS,        JSON_TABLE_CUSTOM,   AT(request.deadline_sec), BY(decode_uint32) },
        { POD_LABEL_MIN_NETWORK,        JSON_TABLE_CUSTOM,   AT(request.network_mbps), BY(decode_uint32) },
        { POD_LABEL_ROLE,               JSON_TABLE_CUSTOM,   AT(request.serves), BY(decode_role) },
        { .name = NULL },
};
static const struct json_table_row spec_rows[] = {
        { "nodeName",                   JSON_TABLE_BORROWED, AT(node) },
        { "activeDeadlineSeconds",      JSON_TABLE_CUSTOM,   AT(request),              BY(decode_deadline) },
        { "schedulingGates",            JSON_TABLE_CUSTOM,   AT(request.gated), BY(decode_gates) },
        { .name = NULL },
};
static const struct json_table_row annotation_rows[] = {
        { POD_ANNOTATION_PLACEMENT,     JSON_TABLE_CUSTOM,   AT(request.placement), BY(decode_placement) },
        { POD_ANNOTATION_BATCH,         JSON_TABLE_CUSTOM,   AT(request.batch), BY(decode_uint32) },
        { POD_LABEL_MIN_NETWORK,        JSON_TABLE_CUSTOM,   AT(request.network_mbps), BY(decode_uint32) }, /* either way */
        { POD_ANNOTATION_FIXED,         JSON_TABLE_CUSTOM,   AT(request.fixed_bytes), BY(decode_bytes) },
        { POD_ANNOTATION_SAMPLE,        JSON_TABLE_CUSTOM,   AT(request.sample_bytes), BY(decode_bytes) },
        { POD_ANNOTATION_SAVES,         JSON_TABLE_CUSTOM,   AT(saves), BY(decode_saves) },
        { POD_ANNOTATION_BORROWED,      JSON_TABLE_CUSTOM,   AT(borrowed), BY(decode_borrowed) },
        { POD_ANNOTATION_WEIGHT,        JSON_TABLE_CUSTOM,   AT(weight), BY(decode_weight) },
        { POD_ANNOTATION_BATCH_SHARE,   JSON_TABLE_CUSTOM,   AT(batch_share), BY(decode_share) },
        { .name = NULL },
};
/* clang-format on */
static const struct json_table metadata_table = TABLE(metadata_rows), label_table = TABLE(label_rows),
                               spec_table = TABLE(spec_rows), annotation_table = TABLE(annotation_rows);

/* Every row that can be read, whichever cannot. Return: 0, or what is wrong with the first that is wrong. */
static int decode_rows(const struct json_table *table, const struct json_field *at,
                       struct ledger_pod_facts *ret, struct err *err)
{
        struct json_table lenient = *table;
        int r = at->value == NULL ? 0 : json_table_decode_at(table, at, ret, err);

        lenient.lenient = true;
        if (r < 0)
                (void) json_table_decode_at(&lenient, at, ret, NULL);
        return r;
}

static int decode_models(const struct json_field *annotations, struct symbols *symbols, bool add,
                         struct request *request, struct err *err)
{
        struct json_field at = json_field_get(annotations, POD_ANNOTATION_MODELS);
        const char *text, *end;
        int r = json_field_string(annotations, POD_ANNOTATION_MODELS, &text, err);

        if (r != 0)
                return r < 0 ? r : 0;
        for (; *text != '\0'; text = *end == '|' ? end + 1 : end) {
                char model[DEVICE_MODEL_BYTES] = "";
                size_t bytes;

                end = strchrnul(text, '|');
                while (*text == ' ') /* none at the end */
                        text++;
                bytes = (size_t) (end - text);
                while (bytes > 0 && text[bytes - 1] == ' ')
                        bytes--;
                if (bytes == 0)
                        continue;
                if (request->model_count == REQUEST_MODELS_MAX)
                        return json_field_error(&at, err, "names more than %d models", REQUEST_MODELS_MAX);
                if (bytes < sizeof(model)) /* a longer one is a model that nobody has */
                        memcpy(model, text, bytes);
                request->models[request->model_count++] = pod_chips_symbol(symbols, model, add);
        }
        return 0;
}

static bool is_listed(const char *const *list, size_t count, const char *name)
{
        for (size_t i = 0; i < count; i++)
                if (strcmp(list[i], name) == 0)
                        return true;
        return false;
}

bool pod_json_emergency_allowed(const struct pod_json_policy *policy, const char *namespace_)
{
        return is_listed(policy->emergency_namespaces, policy->emergency_namespace_count, "*") ||
               is_listed(policy->emergency_namespaces, policy->emergency_namespace_count, namespace_);
}

bool pod_json_emergency_class(const struct pod_json_policy *policy, const char *class)
{
        return is_listed(policy->emergency_classes, policy->emergency_class_count, class);
}

/* The class is the administrator's word; the label counts only where it is allowed, and is otherwise passed
 * over. */
static int decode_urgency(const struct json_field *spec, const struct json_field *labels,
                          const struct pod_json_policy *policy, struct ledger_pod_facts *facts,
                          struct err *err)
{
        struct json_field at = json_field_get(labels, POD_LABEL_URGENCY);
        const char *class = NULL, *label = NULL;
        bool allowed = pod_json_emergency_allowed(policy, facts->namespace_);

        if (json_field_string(spec, "priorityClassName", &class, err) < 0 ||
            json_field_string(labels, POD_LABEL_URGENCY, &label, err) < 0)
                return -EBADMSG;
        if (label != NULL && strcmp(label, "regular") != 0 && strcmp(label, "emergency") != 0)
                return json_field_error(&at, err, "must be \"regular\" or \"emergency\", not \"%s\"", label);
        facts->request.emergency = class != NULL && pod_json_emergency_class(policy, class);
        if (label == NULL || strcmp(label, "emergency") != 0 || facts->request.emergency)
                return 0;
        facts->request.emergency = allowed;
        facts->request.urgency_ignored = !allowed;
        return 0;
}

/* remuda.dev/groups: "GROUP=CHIPS,...": what our own bind recorded. Something else there is passed over: the
 * pod is then assumed where it breaks least. */
static void decode_groups(const struct json_field *annotations, struct symbols *symbols, bool add,
                          struct ledger_pod_facts *facts)
{
        const char *text = "";

        (void) json_field_string(annotations, POD_ANNOTATION_GROUPS, &text, NULL);
        while (*text != '\0' && facts->part_count < LEDGER_POD_PARTS_MAX) {
                const char *end = strchrnul(text, ','), *equals = memchr(text, '=', (size_t) (end - text));
                char group[DEVICE_GROUP_BYTES] = "", number[12] = "";
                uint64_t chips = 0;

                if (equals == NULL || (size_t) (equals - text) >= sizeof(group) ||
                    (size_t) (end - equals) > sizeof(number))
                        break;
                memcpy(group, text, (size_t) (equals - text));
                memcpy(number, equals + 1, (size_t) (end - equals) - 1);
                if (text_parse_uint64(number, &chips) < 0 || chips < 1 || chips > REQUEST_CHIPS_MAX)
                        break;
                facts->parts[facts->part_count++] =
                        (struct ledger_pod_part){ .group = pod_chips_symbol(symbols, group, add),
                                                  .chips = (uint32_t) chips };
                text = *end == ',' ? end + 1 : end;
        }
        if (*text != '\0')
                facts->part_count = 0;
}

/* "RESOURCE=CHIPSxMEMBERS", `bytes` long. */
static int decode_kind(const char *text, size_t bytes, struct symbols *symbols, bool add,
                       struct request_member *ret)
{
        const char *equals = memchr(text, '=', bytes), *x;
        char chips[12] = "", members[12] = "", resource[DEVICE_RESOURCE_BYTES];
        uint64_t chip_count = 0, member_count = 0;

        if (equals == NULL)
                return -EINVAL;
        x = memchr(equals, 'x', bytes - (size_t) (equals - text));
        if (x == NULL || (size_t) (x - equals) > sizeof(chips) ||
            bytes - (size_t) (x - text) > sizeof(members))
                return -EINVAL;
        memcpy(chips, equals + 1, (size_t) (x - equals) - 1);
        memcpy(members, x + 1, bytes - (size_t) (x - text) - 1);
        if (text_parse_uint64(chips, &chip_count) < 0 || text_parse_uint64(members, &member_count) < 0 ||
            chip_count < 1 || chip_count > REQUEST_CHIPS_MAX || member_count < 1 ||
            member_count > REQUEST_GANG_MAX)
                return -EINVAL;
        (void) text_format(resource, sizeof(resource), "%.*s", (int) (equals - text), text);
        *ret = (struct request_member){ .resource = pod_chips_symbol(symbols, resource, add),
                                        .chips = (uint32_t) chip_count,
                                        .members = (uint32_t) member_count };
        return 0;
}

/* remuda.dev/gang: "nvidia.com/gpu=4x2,huawei.com/Ascend910=8x1". */
static int decode_kinds(const struct json_field *annotations, struct symbols *symbols, bool add,
                        struct ledger_pod_facts *facts, struct err *err)
{
        struct json_field at = json_field_get(annotations, POD_ANNOTATION_GANG);
        const char *text;
        int r = json_field_string(annotations, POD_ANNOTATION_GANG, &text, err);

        if (r != 0)
                return r < 0 ? r : 0;
        while (*text != '\0') {
                const char *end = strchrnul(text, ',');

                while (*text == ' ')
                        text++;
                if (facts->kind_count == REQUEST_KINDS_MAX ||
                    decode_kind(text, (size_t) (end - text), symbols, add, &facts->kinds[facts->kind_count]) <
                            0)
                        return json_field_error(&at, err,
                                                "must be RESOURCE=CHIPSxMEMBERS, ... such as "
                                                "nvidia.com/gpu=4x2 (at most %d kinds)",
                                                REQUEST_KINDS_MAX);
                facts->kind_count++;
                text = *end == ',' ? end + 1 : end;
        }
        return 0;
}

/* When the last of its containers ended; 0 = not told. Told for people's statistics: what cannot be read is
 * left out. */
static uint64_t last_end(const struct json_field *status)
{
        struct json_field containers = json_field_get(status, "containerStatuses");
        uint64_t last = 0, end;

        for (size_t i = 0; i < json_field_count(&containers); i++) {
                struct json_field container = json_field_at(&containers, i),
                                  state = json_field_get(&container, "state"),
                                  terminated = json_field_get(&state, "terminated");
                const char *text = "";

                if (json_field_string(&terminated, "finishedAt", &text, NULL) == 0 &&
                    timestamp_parse(text, &end) == 0 && end > last)
                        last = end;
        }
        return last;
}

static int decode_status(const struct json_field *status, struct ledger_pod_facts *facts, struct err *err)
{
        struct json_field start = json_field_get(status, "startTime");
        const char *phase = "", *text = "";

        (void) json_field_string(status, "nominatedNodeName", &facts->nominated, NULL); /* odd: none */
        if (json_field_string(status, "phase", &phase, err) < 0 ||
            json_field_as_string(&start, &text, err) < 0)
                return -EBADMSG;
        facts->ended = strcmp(phase, "Succeeded") == 0 || strcmp(phase, "Failed") == 0;
        if (facts->ended)
                facts->ended_usec = last_end(status);
        return timestamp_parse(text, &facts->started_usec) == 0
                       ? 0
                       : json_field_error(&start, err, "must be a time such as 2026-11-21T10:00:00Z");
}

/* The chips of the whole job, as far as the pod itself says: the class rule counts them. */
static void count_class_chips(struct ledger_pod_facts *facts)
{
        struct request *request = &facts->request;
        uint32_t members = 0;

        request->class_chips =
                (uint64_t) request_chips(request) * (request->gang_size > 1 ? request->gang_size : 1);
        if (facts->kind_count == 0)
                return;
        request->class_chips = 0;
        for (size_t i = 0; i < facts->kind_count; i++) {
                request->class_chips += (uint64_t) facts->kinds[i].chips * facts->kinds[i].members;
                members += facts->kinds[i].members;
        }
        if (request->gang_size == 0)
                request->gang_size = members;
}

/* What people wish: labels and annotations. Each stands for itself; the first that is wrong is told. */
static int decode_wishes(const struct json_field *metadata, const struct json_field *spec,
                         const struct pod_json_policy *policy, struct symbols *symbols, bool add,
                         struct ledger_pod_facts *ret, struct err *err)
{
        struct json_field labels = json_field_get(metadata, "labels"),
                          annotations = json_field_get(metadata, "annotations");
        int first = decode_rows(&label_table, &labels, ret, err), r;

        r = decode_rows(&annotation_table, &annotations, ret, first == 0 ? err : NULL);
        first = first == 0 ? r : first;
        ret->request.share_given = ret->batch_share > 0;
        r = decode_models(&annotations, symbols, add, &ret->request, first == 0 ? err : NULL);
        first = first == 0 ? r : first;
        r = decode_kinds(&annotations, symbols, add, ret, first == 0 ? err : NULL);
        first = first == 0 ? r : first;
        decode_groups(&annotations, symbols, add, ret);
        r = decode_urgency(spec, &labels, policy, ret, first == 0 ? err : NULL);
        return first == 0 ? r : first;
}

int pod_json_decode(const json_t *pod, const struct pod_json_policy *policy, struct ledger *ledger, bool add,
                    struct ledger_pod_facts *ret, struct err *err)
{
        struct json_field root = json_field_root(pod), metadata = json_field_get(&root, "metadata"),
                          spec = json_field_get(&root, "spec"), status = json_field_get(&root, "status");
        int first, r;

        *ret = (struct ledger_pod_facts){ .namespace_ = "default", .name = "", .uid = "" };
        if (json_field_is_object(&root, err) < 0 || json_field_require(&root, "metadata", err) < 0)
                return -EBADMSG;
        first = decode_rows(&metadata_table, &metadata, ret, err);
        ret->deleting = ret->deletion_usec != 0;
        if (ret->deletion_usec == DELETION_UNREAD)
                ret->deletion_usec = 0;
        if (ret->name[0] == '\0')
                return -EBADMSG;
        r = decode_status(&status, ret, first == 0 ? err : NULL);
        first = first == 0 ? r : first;
        r = decode_rows(&spec_table, &spec, ret, first == 0 ? err : NULL);
        first = first == 0 ? r : first;
        ret->request.needs = pod_needs_decode(&spec);
        r = pod_chips_decode(&spec, ledger, add, &ret->request, first == 0 ? err : NULL);
        first = first == 0 ? r : first;
        r = decode_wishes(&metadata, &spec, policy, &ledger->symbols, add, ret, first == 0 ? err : NULL);
        first = first == 0 ? r : first;
        count_class_chips(ret);
        r = groups_decode(&spec, ledger, ret, first == 0 ? err : NULL);
        return first == 0 ? r : first;
}

/* Somebody vouches for it that nothing runs on the node any more. */
static bool is_out_of_service(const struct json_field *root)
{
        struct json_field spec = json_field_get(root, "spec"), taints = json_field_get(&spec, "taints");

        for (size_t i = 0; i < json_field_count(&taints); i++) {
                struct json_field taint = json_field_at(&taints, i);
                const char *key = "";

                if (json_field_string(&taint, "key", &key, NULL) == 0 &&
                    strcmp(key, "node.kubernetes.io/out-of-service") == 0)
                        return true;
        }
        return false;
}

/* "RESOURCE.replicas": ids of one device, as device plugins that share them (and their feature discovery)
 * label the node. */
static uint32_t replicas_of(const struct json_field *labels, const char *resource)
{
        char label[DEVICE_RESOURCE_BYTES + sizeof(".replicas")];
        const char *text = "";
        uint64_t replicas = 0;

        if (!text_format(label, sizeof(label), "%s.replicas", resource) ||
            json_field_string(labels, label, &text, NULL) < 0 || text_parse_uint64(text, &replicas) < 0)
                return 0;
        return replicas < REQUEST_CHIPS_MAX ? (uint32_t) replicas : REQUEST_CHIPS_MAX;
}

/* Those of one rank that there is room for. A count that is none offers nothing. */
static void take_allocatable(const struct json_field *allocatable, const struct json_field *labels,
                             struct ledger *ledger, unsigned rank, uint16_t *brought,
                             struct ledger_node_facts *ret)
{
        struct symbols *symbols = &ledger->symbols;
        const char *name;
        json_t *value;

        json_object_foreach((json_t *) allocatable->value, name, value)
        {
                struct json_field at = json_field_get(allocatable, name);
                uint32_t chips = 0;

                if (!pod_chips_extended(name) ||
                    ledger_chips_rank(ledger, symbols_find(symbols, name, strlen(name))) != rank)
                        continue;
                if (ret->allocatable_count == ARRAY_SIZE(ret->allocatable)) {
                        ret->allocatable_left_out++;
                        continue;
                }
                (void) pod_chips_read(&at, &chips, NULL);
                ret->allocatable[ret->allocatable_count++] =
                        (struct ledger_trust_offer){ .resource = symbols_add_of(symbols, name, brought),
                                                     .chips = chips,
                                                     .replicas = replicas_of(labels, name) };
        }
}

int pod_json_node_decode(const json_t *node, struct ledger *ledger, struct ledger_node_facts *ret,
                         struct err *err)
{
        struct json_field root = json_field_root(node), metadata, status, allocatable, labels, info;
        int r = json_field_is_object(&root, err);
        struct ledger_node *known;
        uint16_t brought = 0;

        *ret = (struct ledger_node_facts){ 0 };
        if (r < 0 || json_field_object(&root, "metadata", &metadata, err) < 0 ||
            json_field_object(&metadata, "labels", &labels, err) < 0 ||
            json_field_object(&root, "status", &status, err) < 0 ||
            json_field_object(&status, "allocatable", &allocatable, err) < 0 ||
            json_field_require(&metadata, "name", err) < 0 ||
            json_field_string(&metadata, "name", &ret->name, err) < 0 ||
            json_field_string(&metadata, "uid", &ret->uid, err) < 0 ||
            json_field_object(&status, "nodeInfo", &info, err) < 0 ||
            json_field_string(&info, "bootID", &ret->boot_id, err) < 0 ||
            json_field_string(&labels, NODE_LABEL_SWITCH_DOMAIN, &ret->switch_domain, err) < 0)
                return -EBADMSG;
        ret->out_of_service = is_out_of_service(&root);
        ret->room = pod_needs_offered(&allocatable);
        known = ledger_nodes_find(ledger, ret->name, strlen(ret->name));
        for (unsigned rank = LEDGER_CHIPS_SURE + 1; rank-- > LEDGER_CHIPS_NONE;)
                take_allocatable(&allocatable, &labels, ledger, rank,
                                 known != NULL ? &known->brought : &brought, ret);
        return 0;
}
