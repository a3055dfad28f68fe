/* Doctor: the checks of `remuda doctor`: each looks at one thing of this node and says what to do. */
#pragma once

#include <stdbool.h>

#include "agent/inventory/device.h"
#include "agent/tree/tree.h"
#include "cli/command/agent_client.h"

enum verdict { VERDICT_PASS, VERDICT_WARN, VERDICT_FAIL, VERDICT_SKIP, VERDICT_COUNT };

struct finding_of_check {
        enum verdict verdict;
        char sentence[400]; /* what was found */
        char remedy[300];   /* what to do; "" when all is well */
};

/* What the checks look at, looked up once. */
struct patient {
        const struct tree *tree;
        const struct inventory *inventory; /* a fresh look, without the agent */
        bool live;                         /* the tree is this machine */
        const char *kubelet_dir, *socket, *config, *programs;
        bool agent_answers;
        char agent_trouble[400];
        struct inventory agent_inventory;
        char *metrics; /* NULL = the agent does not answer */
};

struct check {
        const char *name;
        bool live_only; /* of this machine, not of a directory */
        void (*run)(const struct patient *patient, struct finding_of_check *found);
};

extern const struct check checks_machine[], checks_system[], checks_agent[]; /* end with name == NULL */

/* found() - the worse verdict stays, with its words. */
void found(struct finding_of_check *f, enum verdict verdict, const char *remedy, const char *fmt, ...)
        __attribute__((format(printf, 4, 5)));
