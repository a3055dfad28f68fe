/* What the ledger holds of a pod or a node, kept as text and compared with what it holds after a fresh
 * look. */
#include "scheduler-extender/ledger/audit.h"

#include <string.h>

#include "base/text.h"
#include "scheduler-extender/ledger/ledger_chips.h"
#include "scheduler-extender/ledger/ledger_nodes.h"
#include "scheduler-extender/ledger/ledger_pods.h"

struct audit audit_pod(const struct ledger *ledger, const char *namespace_, const char *name)
{
        const struct ledger_pod *pod = ledger_pods_find(ledger, namespace_, name);
        struct audit audit = { .known = pod != NULL };

        if (pod == NULL)
                return audit;
        audit.ended = pod->ended;
        audit.deleting = pod->deleting;
        if (pod->node != NULL) {
                (void) text_copy(audit.node, sizeof(audit.node), pod->node->name);
                audit.chips = ledger_chips_asked(ledger, &pod->request);
        }
        return audit;
}

struct audit audit_node(const struct ledger *ledger, const char *name)
{
        const struct ledger_node *node = ledger_nodes_find(ledger, name, strlen(name));
        struct audit audit = { .known = node != NULL && ledger_node_known(node), .of_node = true };

        for (uint32_t g = 0; node != NULL && g < node->group_count; g++)
                audit.chips += node->groups[g].usable;
        return audit;
}

bool audit_settle(struct ledger *ledger, const char *namespace_, const char *name)
{
        struct ledger_pod *pod = ledger_pods_find(ledger, namespace_, name);

        if (pod == NULL || !pod->assumed || pod->writing || pod->settling || pod->done)
                return false;
        ledger_pods_forget(ledger, pod);
        return true;
}

static void describe(const struct audit *audit, struct text *text)
{
        if (!audit->known)
                text_append(text, "nothing");
        else if (audit->ended)
                text_append(text, "that it has ended");
        else if (audit->of_node)
                text_printf(text, "%llu usable chips", (unsigned long long) audit->chips);
        else if (audit->node[0] == '\0')
                text_append(text, "that it is on no node");
        else
                text_printf(text, "%llu chips on node %s", (unsigned long long) audit->chips, audit->node);
}

bool audit_differs(const struct audit *before, const struct audit *now, char *sentence, size_t sentence_bytes)
{
        struct text text = { 0 };

        if (!now->known && (!before->known || before->deleting || before->ended || before->node[0] == '\0'))
                return false;
        if (before->known == now->known && before->ended == now->ended && before->chips == now->chips &&
            strcmp(before->node, now->node) == 0)
                return false;
        text_append(&text, "the ledger had ");
        describe(before, &text);
        text_append(&text, ", a fresh look at the store says ");
        describe(now, &text);
        text_append(&text, "; corrected");
        (void) text_copy(sentence, sentence_bytes,
                         text.failed || text.data == NULL ? "the ledger was wrong; corrected" : text.data);
        text_free(&text);
        return true;
}
