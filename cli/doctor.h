/* Doctor: the checks of `remuda doctor`: each looks at one thing of this node and says what to do. */
#pragma once

#include <stdbool.h>
#include <systemd/sd-event.h>

#include "agent/inventory/inventory.h"
#include "agent/tree/tree.h"
#include "cli/command/agent_client.h"
#include "store/kubernetes/kube.h"

enum doctor_verdict { DOCTOR_PASS, DOCTOR_WARN, DOCTOR_FAIL, DOCTOR_SKIP, DOCTOR_COUNT };

struct doctor_finding {
        enum doctor_verdict verdict;
        char sentence[400]; /* what was found */
        char remedy[300];   /* what to do; "" when all is well */
};

/* What the checks look at, looked up once. */
struct doctor_patient {
        const struct tree *tree;
        const struct inventory *inventory; /* a fresh look, without the agent */
        bool live;                         /* the tree is this machine */
        const char *kubelet_dir, *socket, *config, *programs;
        const char *cdi_dir; /* NULL = as the configuration says */
        bool agent_answers;
        char agent_trouble[400];
        struct inventory agent_inventory;
        char *metrics;            /* NULL = the agent does not answer */
        struct kube_client *kube; /* of the cluster's checks alone, as is the loop */
        sd_event *loop;
};

struct doctor_check {
        const char *name;
        bool live_only; /* of this machine, not of a directory */
        void (*run)(const struct doctor_patient *patient, struct doctor_finding *f);
};

extern const struct doctor_check doctor_checks_machine[], doctor_checks_system[], doctor_checks_agent[],
        doctor_checks_claims[], doctor_checks_cluster[]; /* end with name == NULL */

/* doctor_found() - the worse verdict stays, with its words. */
void doctor_found(struct doctor_finding *f, enum doctor_verdict verdict, const char *remedy, const char *fmt,
                  ...) __attribute__((format(printf, 4, 5)));
