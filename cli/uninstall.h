/* Uninstall: what of a cluster is Remuda's, by kind, in the order in which it goes: jobs while their
 * controller is there, then who would write anything anew, then what was written, then kinds, rights and
 * rules, the namespace last. Pure: objects in, answers out. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* How an object of a collection is known to be ours. */
enum uninstall_match {
        UNINSTALL_ALL,       /* the kind is */
        UNINSTALL_PART_OF,   /* by its label app.kubernetes.io/part-of, which the list is asked for by */
        UNINSTALL_AGENT,     /* the heartbeat of an agent */
        UNINSTALL_LEADER,    /* the Lease of who leads, by its name */
        UNINSTALL_OF_JOB,    /* a TrainingJob owns it */
        UNINSTALL_ADMITTING, /* it binds the role of the controller in a namespace of jobs */
};

/* What happens with it. */
enum uninstall_way {
        UNINSTALL_JOBS,      /* is deleted, and waited for; after the time our finalizer is taken away */
        UNINSTALL_WAIT,      /* is deleted, and waited for */
        UNINSTALL_WITH_PODS, /* is deleted with what it started, and waited for */
        UNINSTALL_DELETE,    /* is deleted */
};

struct uninstall_step {
        const char *kind;  /* as people know it: "trainingjob" */
        const char *group; /* "/api/v1", "/apis/GROUP/VERSION" */
        const char *plural;
        const char *namespace_; /* looked for in this one alone; NULL = in all, or it has none */
        enum uninstall_match match;
        enum uninstall_way way;
};

extern const struct uninstall_step uninstall_steps[]; /* ends with kind == NULL */
/* Before the first of these steps only jobs have been ended; before the second nodes lose what was written on
 * them: who writes it is gone. */
extern const size_t uninstall_rest_step, uninstall_nodes_step;

/* uninstall_list_path() - Return: does it fit? */
bool uninstall_list_path(const struct uninstall_step *step, char *path, size_t path_bytes);

/* uninstall_object_path() - Return: false: its names are no names, or do not fit. */
bool uninstall_object_path(const struct uninstall_step *step, const json_t *object, char *path,
                           size_t path_bytes);

bool uninstall_matches(const struct uninstall_step *step, const json_t *object);

/* uninstall_node_patch() - a merge patch that takes our labels and annotation from a Node; NULL: none, or no
 * memory. uninstall_condition_patch() - a strategic merge patch that takes our condition from its status,
 * likewise. uninstall_finalizer_patch() - one that leaves a job's finalizers without ours; NULL: it has not.
 */
json_t *uninstall_node_patch(const json_t *node);
json_t *uninstall_condition_patch(const json_t *node);
json_t *uninstall_finalizer_patch(const json_t *job);
json_t *
uninstall_taint_patch(const json_t *node); /* a JSON patch that takes our taint from a Node, likewise */

/* uninstall_controls() - is this Deployment a controller that is there to end jobs? */
bool uninstall_controls(const json_t *deployment);

/* uninstall_says() - "default/fashion", or the name alone of what has no namespace. */
bool uninstall_says(const json_t *object, char *name, size_t name_bytes);
