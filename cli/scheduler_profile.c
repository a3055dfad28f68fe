/* Scheduler profile: kube-scheduler enables the plugin by default, at `multiPoint`; a profile that disables
 * it there or at its own point has none, unless it enables it itself. */
#include "cli/scheduler_profile.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "base/yaml/yaml_parse.h"

#define PREEMPTION "DefaultPreemption"

/* Does plugins.POINT.LIST name the plugin? "*" is all that are there by default. */
static bool lists(const json_t *plugins, const char *point, const char *list)
{
        const json_t *rows = json_object_get(json_object_get(plugins, point), list), *row;
        size_t i;

        json_array_foreach(rows, i, row)
        {
                const char *name = json_string_value(json_object_get(row, "name"));

                if (name != NULL && (strcmp(name, PREEMPTION) == 0 || strcmp(name, "*") == 0))
                        return true;
        }
        return false;
}

static bool preempts(const json_t *plugins)
{
        if (lists(plugins, "postFilter", "enabled") || lists(plugins, "multiPoint", "enabled"))
                return true;
        return !lists(plugins, "postFilter", "disabled") && !lists(plugins, "multiPoint", "disabled");
}

static void read_profile(const json_t *profile, struct scheduler_profile *ret)
{
        const char *name = json_string_value(json_object_get(profile, "schedulerName"));

        (void) text_copy(ret->name, sizeof(ret->name), name == NULL ? "default-scheduler" : name);
        ret->preempts = preempts(json_object_get(profile, "plugins"));
}

int scheduler_profile_read(const char *text, struct scheduler_profile *ret, struct err *err)
{
        const json_t *profiles;
        json_t *root = NULL;
        int r = yaml_parse(text, strlen(text), &root, err);

        if (r < 0)
                return r;
        profiles = json_object_get(root, "profiles");
        read_profile(json_array_get(profiles, 0),
                     ret); /* none: kube-scheduler makes one with every default */
        for (size_t i = 1; i < json_array_size(profiles) && !ret->preempts; i++)
                read_profile(json_array_get(profiles, i), ret);
        json_decref(root);
        return 0;
}

static bool manages(const json_t *extender, const char *resource)
{
        const json_t *rows = json_object_get(extender, "managedResources"), *row;
        size_t i;

        json_array_foreach(rows, i, row)
        {
                const char *name = json_string_value(json_object_get(row, "name"));

                if (name != NULL && strcmp(name, resource) == 0)
                        return true;
        }
        return json_array_size(rows) == 0;
}

bool scheduler_profile_asks(const char *text, const char *resource)
{
        struct err err = { 0 };
        const json_t *extenders, *extender;
        json_t *root = NULL;
        bool asks = false;
        size_t i;

        if (yaml_parse(text, strlen(text), &root, &err) < 0)
                return false;
        extenders = json_object_get(root, "extenders");
        json_array_foreach(extenders, i, extender) asks = asks || manages(extender, resource);
        json_decref(root);
        return asks;
}
