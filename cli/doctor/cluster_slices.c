/* remuda doctor --cluster: are the pools of slices whole, and does one driver alone offer a node's chips? */
#include "cli/doctor/cluster_slices.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/inventory/dra_name.h"
#include "agent/vendor/vendor.h"
#include "base/json/json_read.h"
#include "base/text.h"
#include "cli/doctor_cluster.h"

#define SLICES_MAX 500

static const json_t *pool_of(const json_t *slice)
{
        return json_object_get(json_object_get(slice, "spec"), "pool");
}

static json_int_t generation_of(const json_t *slice)
{
        return json_integer_value(json_object_get(pool_of(slice), "generation"));
}

static const char *spec_word(const json_t *slice, const char *name)
{
        return json_read_word(json_object_get(slice, "spec"), name);
}

static bool is_ours(const json_t *slice)
{
        return strcmp(spec_word(slice, "driver"), DRA_NAME_DRIVER) == 0;
}

/* Of one generation: kube-scheduler takes no device of a pool whose slices of the newest one are not all
 * there. Example: two of generation 4 that say "3 slices", and one of generation 3 that is left. */
static void check_pool(const json_t *slices, const json_t *of, struct doctor_finding *f)
{
        json_int_t newest = generation_of(of), wanted = 0, there = 0;
        const char *node = spec_word(of, "nodeName");
        const json_t *slice;
        size_t i;

        json_array_foreach((json_t *) slices, i,
                           slice) if (is_ours(slice) && strcmp(spec_word(slice, "nodeName"), node) == 0 &&
                                      generation_of(slice) > newest) newest = generation_of(slice);
        json_array_foreach((json_t *) slices, i, slice)
        {
                if (!is_ours(slice) || strcmp(spec_word(slice, "nodeName"), node) != 0 ||
                    generation_of(slice) != newest)
                        continue;
                there++;
                wanted = json_integer_value(json_object_get(pool_of(slice), "resourceSliceCount"));
        }
        if (there != wanted)
                doctor_found(
                        f, DOCTOR_WARN,
                        "look at the log of the agent on that node; it sets its slices right within a second",
                        "the slices of node %.100s are not whole: %lld of %lld of generation %lld; none of "
                        "its chips is given by claims",
                        node, (long long) there, (long long) wanted, (long long) newest);
}

/* Another driver of chips on a node that ours offers. */
static void check_other(const json_t *slices, const json_t *other, struct doctor_finding *f)
{
        const char *driver = spec_word(other, "driver"), *node = spec_word(other, "nodeName"), *whole = NULL;
        const json_t *slice;
        size_t i;

        if (vendor_of_claims(driver, &whole) == NULL ||
            json_array_size(json_object_get(json_object_get(other, "spec"), "devices")) == 0)
                return;
        json_array_foreach((json_t *) slices, i,
                           slice) if (is_ours(slice) && strcmp(spec_word(slice, "nodeName"), node) == 0)
                doctor_found(
                        f, DOCTOR_FAIL,
                        "take one of both drivers away from that node; its attributes: plugin.selectorsOf",
                        "the drivers %.63s and " DRA_NAME_DRIVER
                        " both offer the chips of node %.100s: each is given twice",
                        driver, node);
}

void cluster_slices_check(const struct doctor_patient *p, struct doctor_finding *f)
{
        struct doctor_cluster_answer answer;
        const json_t *slices, *slice;
        size_t i, count = 0;
        const char *cut = ""; /* the node that a page may end amid the slices of */
        char path[80];
        json_t *list;

        (void) text_format(path, sizeof(path), "/apis/resource.k8s.io/v1/resourceslices?limit=%d",
                           SLICES_MAX);
        list = doctor_cluster_ask(p, path, NULL, &answer);
        if (list == NULL && answer.result == -ENOENT)
                doctor_found(f, DOCTOR_SKIP, "",
                             "this cluster has no resource.k8s.io/v1: nothing is offered by claims");
        else if (list == NULL)
                doctor_cluster_found_none(f, &answer, "list of ResourceSlices", "");
        if (list == NULL)
                return;
        slices = json_object_get(list, "items");
        if (json_read_word(json_object_get(list, "metadata"), "continue")[0] != '\0')
                cut = spec_word(json_array_get(slices, json_array_size(slices) - 1), "nodeName");
        json_array_foreach((json_t *) slices, i, slice)
        {
                count += is_ours(slice);
                if (is_ours(slice) && strcmp(spec_word(slice, "nodeName"), cut) != 0)
                        check_pool(slices, slice, f);
                else if (!is_ours(slice))
                        check_other(slices, slice, f);
        }
        if (json_read_word(json_object_get(list, "metadata"), "continue")[0] != '\0')
                doctor_found(f, DOCTOR_WARN, "`remuda doctor` on a node looks at that node",
                             "there are more than %d ResourceSlices, and only these were looked at",
                             SLICES_MAX);
        doctor_found(f, DOCTOR_PASS, "",
                     "%zu slices of " DRA_NAME_DRIVER
                     ", each pool is whole, and nobody else offers its chips",
                     count);
        json_decref(list);
}
