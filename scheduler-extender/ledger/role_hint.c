/* Compares each word of a role with those of all device groups. */
#include "scheduler-extender/ledger/role_hint.h"

#include <string.h>

#include "agent/vendor/vendor.h"
#include "base/cleanup.h"
#include "base/near.h"
#include "base/text.h"

struct word {
        const char *field, *wanted;
        uint32_t (*of)(const struct ledger_group *group); /* its symbol */
        bool (*matches)(const char *wanted, const char *name);
};

static uint32_t runtime_of(const struct ledger_group *group)
{
        return group->runtime;
}

static uint32_t vendor_of(const struct ledger_group *group)
{
        return group->vendor;
}

static uint32_t model_of(const struct ledger_group *group)
{
        return group->model;
}

static uint32_t name_of(const struct ledger_group *group)
{
        return group->name;
}

static bool is_served(const char *wanted, const char *name)
{
        return vendor_serves(name, wanted);
}

static bool is_equal(const char *wanted, const char *name)
{
        return strcmp(wanted, name) == 0;
}

/* Has any group this word? @near: names that it may have been meant to be */
static bool is_known(const struct ledger *ledger, const struct word *word, struct near *near)
{
        for (uint32_t i = 0; i < ledger->node_count; i++)
                for (uint32_t g = 0; g < ledger->nodes[i]->group_count; g++) {
                        uint32_t symbol = word->of(&ledger->nodes[i]->groups[g]);
                        const char *name = symbols_name(&ledger->symbols, symbol);

                        if (symbol != 0 && word->matches(word->wanted, name))
                                return true;
                        if (symbol != 0)
                                near_consider(near, name);
                }
        return false;
}

const char *role_hint(const struct ledger *ledger, const struct job_role *role, char ret[ROLE_HINT_BYTES])
{
        const struct word words[] = {
                { "runtime", role->runtime, runtime_of, is_served },
                { "vendor", role->vendor, vendor_of, is_equal },
                { "model", role->model, model_of, job_role_model_matches },
                { "group", role->group, name_of, is_equal },
        };

        ret[0] = '\0';
        for (size_t i = 0; ledger->node_count > 0 && ret[0] == '\0' && i < ARRAY_SIZE(words); i++) {
                struct near near = { .word = words[i].wanted };
                char names[ROLE_HINT_BYTES / 2];

                if (words[i].wanted[0] != '\0' && !is_known(ledger, &words[i], &near))
                        (void) text_format(ret, ROLE_HINT_BYTES, "; no chip has %s '%.60s'%s", words[i].field,
                                           words[i].wanted, near_say(&near, names, sizeof(names)));
        }
        return ret;
}
