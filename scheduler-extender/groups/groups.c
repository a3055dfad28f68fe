/* The objects are numbers by name, "namespace/group/NAME" or "namespace/group/WORKLOAD/PODGROUP": the members
 * that each needs. A pod's gang size is looked up there when it comes, and again when that number changes. */
#include "scheduler-extender/groups/groups.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "scheduler-extender/ledger/ledger_jobs.h"

#define GROUPS_OF_WORKLOAD_MAX 8 /* as Kubernetes has it */
#define GROUP_KEY_BYTES        (256 + LEDGER_POD_GROUP_BYTES)

static void set_size(const struct ledger *ledger, const char *key, struct request *request)
{
        uint64_t least = name_numbers_get(&ledger->group_sizes, key);
        bool served = (ledger->groups_served & (1u << request->group)) != 0;

        request->ungrouped = least == 0 && served;
        request->gang_size = (uint32_t) least;
        request->class_chips = (uint64_t) request_chips(request) * (least > 1 ? least : 1);
}

/* "group/NAME", or "group/WORKLOAD/PODGROUP" and for each replica of it "/KEY". @ret_size: bytes of what its
 * size is known by. Return: the way; REQUEST_GROUP_NONE where there is none; -EBADMSG. */
static int name_group(const struct json_field *spec, struct ledger_pod_facts *facts, size_t *ret_bytes,
                      struct err *err)
{
        struct json_field group = json_field_get(spec, "schedulingGroup"),
                          workload = json_field_get(spec, "workloadRef");
        const char *name = NULL, *part = NULL, *key = "";

        if (json_field_string(&group, "podGroupName", &name, err) < 0)
                return -EBADMSG;
        if (name != NULL) {
                if (!text_format(facts->group, sizeof(facts->group), "group/%s", name))
                        return json_field_error(&group, err, "the group's name is too long");
                *ret_bytes = strlen(facts->group);
                return REQUEST_GROUP_CYCLE;
        }
        if (json_field_string(&workload, "name", &name, err) < 0 ||
            json_field_string(&workload, "podGroup", &part, err) < 0 ||
            json_field_string(&workload, "podGroupReplicaKey", &key, err) < 0)
                return -EBADMSG;
        if (name == NULL || part == NULL)
                return REQUEST_GROUP_NONE;
        if (!text_format(facts->group, sizeof(facts->group), "group/%s/%s%s%s", name, part,
                         key[0] == '\0' ? "" : "/", key))
                return json_field_error(&workload, err, "the group's name is too long");
        *ret_bytes = strlen("group/") + strlen(name) + 1 + strlen(part);
        return REQUEST_GROUP_ALONE;
}

int groups_decode(const struct json_field *spec, const struct ledger *ledger, struct ledger_pod_facts *facts,
                  struct err *err)
{
        char key[GROUP_KEY_BYTES];
        size_t bytes = 0;
        int way = name_group(spec, facts, &bytes, err);

        if (way <= REQUEST_GROUP_NONE)
                return way;
        facts->job = facts->group;
        facts->kind_count = 0;
        facts->request.group = (unsigned) way & 0x7f;
        if (!text_format(key, sizeof(key), "%s/%.*s", facts->namespace_, (int) bytes, facts->group))
                key[0] = '\0';
        set_size(ledger, key, &facts->request);
        return 0;
}

/* Is `key` the job's group, or the one that its replica is of? */
static bool is_of(const struct ledger_job *job, const char *key, size_t bytes)
{
        return strncmp(job->key, key, bytes) == 0 && (job->key[bytes] == '\0' || job->key[bytes] == '/');
}

/* The pods of a group whose size is another one now: a PodGroup may have the name of a Workload, whose
 * groups' keys begin with its own. Those that are on a node stay what they were. */
static void tell_pods(struct ledger *ledger, const char *key, enum request_group way)
{
        size_t bytes = strlen(key);

        for (size_t i = 0; i < LEDGER_JOB_BUCKETS; i++)
                for (const struct ledger_job *job = ledger->jobs[i]; job != NULL; job = job->next)
                        for (struct ledger_pod *pod = is_of(job, key, bytes) ? job->pods : NULL; pod != NULL;
                             pod = pod->next_in_job)
                                if (pod->request.group == way && pod->node == NULL) {
                                        set_size(ledger, key, &pod->request);
                                        ledger_jobs_recount(pod);
                                }
        ledger->arrival_count++;
        ledger->generation++;
}

/* @part: may be of the entry itself, which goes with the group
 * @least: 0 = it is gone */
static int note(struct ledger *ledger, const char *namespace_, int namespace_bytes, const char *name,
                const char *part, uint32_t least)
{
        enum request_group way = part[0] == '\0' ? REQUEST_GROUP_CYCLE : REQUEST_GROUP_ALONE;
        char key[GROUP_KEY_BYTES];

        if (!text_format(key, sizeof(key), "%.*s/group/%s%s%s", namespace_bytes, namespace_, name,
                         part[0] == '\0' ? "" : "/", part) ||
            name_numbers_get(&ledger->group_sizes, key) == least)
                return 0;
        if (least == 0)
                name_numbers_drop(&ledger->group_sizes, key);
        else if (name_numbers_set(&ledger->group_sizes, key, least) < 0)
                return -ENOMEM;
        tell_pods(ledger, key, way);
        return 0;
}

/* Members that must be there together; 1 where each goes by itself. Of more than a gang may have, that many.
 */
static int decode_policy(const struct json_field *policy, uint32_t *ret, struct err *err)
{
        struct json_field gang = json_field_get(policy, "gang");
        int64_t least = 1;

        *ret = 1;
        if (json_field_int64(&gang, "minCount", 1, INT64_MAX, &least, err) < 0)
                return -EBADMSG;
        *ret = least < REQUEST_GANG_MAX ? (uint32_t) least : REQUEST_GANG_MAX;
        return 0;
}

int groups_take_pod_group(struct ledger *ledger, const char *key, const json_t *object, struct err *err)
{
        struct json_field root = json_field_root(object), spec = json_field_get(&root, "spec"),
                          policy = json_field_get(&spec, "schedulingPolicy");
        const char *slash = strchr(key, '/');
        uint32_t least = 0;
        int r = object == NULL ? 0 : decode_policy(&policy, &least, err);

        return r < 0 || slash == NULL ? r : note(ledger, key, (int) (slash - key), slash + 1, "", least);
}

/* Groups of the workload that it has no more. `key` is "namespace/name". */
static int forget_parts(struct ledger *ledger, const char *key)
{
        char prefix[GROUP_KEY_BYTES];
        const char *slash = strchr(key, '/');
        size_t bytes;
        int r = 0;

        if (slash == NULL ||
            !text_format(prefix, sizeof(prefix), "%.*s/group/%s/", (int) (slash - key), key, slash + 1))
                return 0;
        bytes = strlen(prefix);
        for (struct name_map_entry *e = name_map_first(&ledger->group_sizes.map), *next; e != NULL && r == 0;
             e = next) {
                next = name_map_next(&ledger->group_sizes.map, e);
                if (strncmp(e->key, prefix, bytes) == 0)
                        r = note(ledger, key, (int) (slash - key), slash + 1, e->key + bytes, 0);
        }
        return r;
}

int groups_take_workload(struct ledger *ledger, const char *key, const json_t *object, struct err *err)
{
        struct json_field root = json_field_root(object), spec = json_field_get(&root, "spec"), groups;
        const char *slash = strchr(key, '/');
        int r = json_field_array(&spec, "podGroups", GROUPS_OF_WORKLOAD_MAX, &groups, err);

        if (r < 0 || object == NULL || slash == NULL) /* they never change while it is there */
                return r < 0 ? r : forget_parts(ledger, key);
        for (size_t i = 0; i < json_field_count(&groups); i++) {
                struct json_field group = json_field_at(&groups, i),
                                  policy = json_field_get(&group, "policy");
                const char *name = "";
                uint32_t least;

                if (json_field_string(&group, "name", &name, err) < 0 || name[0] == '\0' ||
                    decode_policy(&policy, &least, err) < 0)
                        return json_field_error(&group, err, "needs a name, and a minCount of 1 or more");
                r = note(ledger, key, (int) (slash - key), slash + 1, name, least);
                if (r < 0)
                        return r;
        }
        return 0;
}

void groups_serve(struct ledger *ledger, unsigned way, bool served)
{
        unsigned bit = 1u << way;

        if (((ledger->groups_served & bit) != 0) == served)
                return;
        ledger->groups_served ^= (uint8_t) bit;
        for (struct ledger_pod *pod = ledger->pending; pod != NULL; pod = pod->next_pending)
                if (pod->request.group == way) {
                        pod->request.ungrouped = served && pod->request.gang_size == 0;
                        ledger_jobs_recount(pod);
                }
        ledger->generation++;
}
