/* What a template says becomes fields of a Pod. */
#include "job/controller/pod_template.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "scheduler-extender/decide/assignment.h"

/* Little enough for any node, and something: without a request a pod is the first that a node short of memory
 * ends, and a namespace with a quota refuses it. */
#define CPU_REQUEST    "100m"
#define MEMORY_REQUEST "64Mi"
#define SHM_SIZE       "1Gi" /* used as it is filled; the 64 MiB of container runtimes are too few for NCCL */

static void put_all(json_t *object, const struct job_template_resource *list, size_t count)
{
        for (size_t i = 0; i < count; i++)
                (void) json_object_set_new(object, list[i].name, json_string(list[i].quantity));
}

json_t *pod_template_resources(const struct job_template *template)
{
        static const struct job_template_resource least[] = { { "cpu", CPU_REQUEST },
                                                              { "memory", MEMORY_REQUEST } };
        json_t *requests = json_object(), *limits = json_object();

        if (template != NULL) {
                put_all(requests, template->requests, template->request_count);
                put_all(limits, template->limits, template->limit_count);
        }
        for (size_t i = 0; i < ARRAY_SIZE(least); i++)
                if (json_object_get(requests, least[i].name) == NULL &&
                    json_object_get(limits, least[i].name) == NULL) /* which is then the request, too */
                        put_all(requests, &least[i], 1);
        return json_pack("{s:o, s:o}", "requests", requests, "limits", limits);
}

static bool is_mounted(const json_t *mounts, const char *path)
{
        json_t *mount;
        size_t i;

        json_array_foreach((json_t *) mounts, i, mount)
        {
                const char *at = json_string_value(json_object_get(mount, "mountPath"));

                if (at != NULL && strcmp(at, path) == 0)
                        return true;
        }
        return false;
}

static void apply_shm(const struct job_template *template, json_t *container, json_t *volumes)
{
        json_t *mounts = json_object_get(container, "volumeMounts");
        const char *size = template->shm_size[0] == '\0' ? SHM_SIZE : template->shm_size;

        if (is_mounted(mounts, "/dev/shm")) /* the job's checkpoint or data are there */
                return;
        (void) json_array_append_new(volumes, json_pack("{s:s, s:{s:s, s:s}}", "name", "shm", "emptyDir",
                                                        "medium", "Memory", "sizeLimit", size));
        (void) json_array_append_new(mounts, json_pack("{s:s, s:s}", "name", "shm", "mountPath", "/dev/shm"));
}

static const struct job_template *template_of(const struct job *job, const struct job_group *group)
{
        const struct job_role *role = assignment_role(job, group->server, group->entry);

        return role == NULL ? &job->servers.template : &role->template;
}

int pod_template_check(const struct job *job, const struct job_group *group, struct err *err)
{
        const struct job_template *template = template_of(job, group);

        if (job_template_find(template->limits, template->limit_count, group->resource) == NULL)
                return 0;
        return err_set(err, -EINVAL,
                       "template of subtask %s: resources.limits: '%s' are chips, and `chips` says how many; "
                       "remove it",
                       group->name, group->resource);
}

void pod_template_apply(const struct job *job, const struct job_group *group, json_t *container,
                        json_t *volumes)
{
        const struct job_template *template = template_of(job, group);
        json_t *resources = pod_template_resources(template), *env = json_object_get(container, "env");
        json_t *chips = json_object_get(json_object_get(container, "resources"), "limits");

        (void) json_object_update(json_object_get(resources, "limits"), chips);
        (void) json_object_set_new(container, "resources", resources);
        for (size_t i = 0; i < template->variable_count; i++)
                (void) json_array_append_new(env,
                                             json_pack("{s:s, s:s}", "name", template->environment[i].name,
                                                       "value", template->environment[i].value));
        apply_shm(template, container, volumes);
}

/* What is ours, or begins as ours do, is nobody else's to say. */
static void add_others(json_t *to, const json_t *from)
{
        const char *name;
        json_t *value;

        json_object_foreach((json_t *) from, name, value)
        {
                if (!text_starts_with(name, "remuda.dev/") && json_object_get(to, name) == NULL)
                        (void) json_object_set(to, name, value);
        }
}

void pod_template_place(const struct job *job, const struct job_group *group, json_t *pod)
{
        const struct job_role *role =
                group == NULL ? NULL : assignment_role(job, group->server, group->entry);
        const struct job_role_place *place = role == NULL ? &job->manager_place : &role->place;
        json_t *metadata = json_object_get(pod, "metadata"), *spec = json_object_get(pod, "spec");

        if (place->match == NULL)
                return;
        add_others(json_object_get(metadata, "labels"), place->labels);
        add_others(json_object_get(metadata, "annotations"), place->annotations);
        (void) json_object_set(spec, "nodeSelector", place->node_selector);
        (void) json_object_set(spec, "tolerations", place->tolerations);
}
