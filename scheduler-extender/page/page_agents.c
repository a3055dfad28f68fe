/* An agent by what it told, when it was heard, and what the kubelet offers for it. */
#include "scheduler-extender/page/page_agents.h"

#include <string.h>

#include "scheduler-extender/ledger/ledger_nodes.h"

/* What the kubelet takes of an agent, a resource or its driver of claims, one by one. */
struct offer {
        const char *name;
        bool registered;
};

static bool is_offered(const struct ledger *ledger, const struct ledger_node *of, const char *resource)
{
        uint32_t symbol = symbols_find(&ledger->symbols, resource, strlen(resource));

        for (uint32_t i = 0; i < of->allocatable_count && symbol != 0; i++)
                if (of->allocatable[i].resource == symbol && of->allocatable[i].chips > 0)
                        return true;
        return false;
}

/* Several groups may be of one resource: the first of them that has usable devices stands for all. */
static bool stands_for(const struct page_node_told *told, size_t i)
{
        const char *resource = page_node_text(told, told->groups[i].resource);

        for (size_t k = 0; k < i; k++)
                if (told->groups[k].healthy > 0 &&
                    strcmp(page_node_text(told, told->groups[k].resource), resource) == 0)
                        return false;
        return told->groups[i].healthy > 0;
}

static bool is_guessed(const struct page_node_told *told, const struct ledger_node *of)
{
        return told->offer_count == 0 && of != NULL && of->has_object;
}

/* Return: false when the i-th is none. As the agent says; of one that does not say, as the Node object has
 * it. */
static bool offer_at(const struct page_node_told *told, const struct ledger *ledger,
                     const struct ledger_node *of, size_t i, struct offer *ret)
{
        if (told->offer_count > 0)
                *ret = (struct offer){ page_node_text(told, told->offers[i].name),
                                       told->offers[i].registered };
        else if (!stands_for(told, i))
                return false;
        else {
                ret->name = page_node_text(told, told->groups[i].resource);
                ret->registered = is_offered(ledger, of, ret->name);
        }
        return true;
}

static size_t count_offers(const struct page_node_told *told, const struct ledger_node *of)
{
        return is_guessed(told, of) ? told->group_count : told->offer_count;
}

enum page_agents_registered page_agents_registered(const struct page_node_told *told,
                                                   const struct ledger *ledger, const struct ledger_node *of)
{
        struct offer offer;

        for (size_t i = 0; i < count_offers(told, of); i++)
                if (offer_at(told, ledger, of, i, &offer) && !offer.registered)
                        return PAGE_AGENTS_NOT_REGISTERED;
        return told->offer_count > 0 || is_guessed(told, of) ? PAGE_AGENTS_REGISTERED : PAGE_AGENTS_NOT_KNOWN;
}

static void write_runbook(struct json_writer *w, const struct page_fleet_node *node, const char *name)
{
        if (node->has_runbook != NULL && node->has_runbook(name))
                json_writer_string(w, "runbook", name);
}

static void write_offers(struct json_writer *w, const struct page_fleet_node *node,
                         const struct ledger_node *of)
{
        enum page_agents_registered all = page_agents_registered(node->told, node->ledger, of);
        struct offer offer;

        if (all == PAGE_AGENTS_NOT_KNOWN)
                return;
        json_writer_bool(w, "registered", all == PAGE_AGENTS_REGISTERED);
        json_writer_open(w, "kubelet", '[');
        for (size_t i = 0; i < count_offers(node->told, of); i++) {
                if (!offer_at(node->told, node->ledger, of, i, &offer))
                        continue;
                json_writer_open(w, NULL, '{');
                json_writer_string(w, "name", offer.name);
                json_writer_bool(w, "registered", offer.registered);
                if (!offer.registered)
                        write_runbook(w, node,
                                      strchr(offer.name, '/') != NULL ? "RemudaAgentNotRegistered"
                                                                      : "RemudaDriverNotRegistered");
                json_writer_close(w, '}');
        }
        json_writer_close(w, ']');
}

static void write_libraries(struct json_writer *w, const struct page_fleet_node *node)
{
        const struct page_node_told *told = node->told;

        if (told->version == 0 && told->library_count == 0)
                return; /* it does not say */
        json_writer_open(w, "libraries", '[');
        for (size_t i = 0; i < told->library_count; i++) {
                const struct page_node_library *library = &told->libraries[i];

                json_writer_open(w, NULL, '{');
                json_writer_string(w, "vendor", page_node_text(told, library->vendor));
                json_writer_string(w, "state", agent_facts_states[library->state]);
                json_writer_word(w, "message", page_node_text(told, library->message));
                if (library->state == AGENT_FACTS_SILENT)
                        write_runbook(w, node, "RemudaVendorCallTimeouts");
                json_writer_close(w, '}');
        }
        json_writer_close(w, ']');
}

static void write_trust(struct json_writer *w, const struct page_fleet_node *node,
                        const struct ledger_node *of)
{
        char why[PAGE_FLEET_WHY_BYTES] = "";
        bool unknown = page_fleet_is_unknown(node->ledger, node->rules, of, why);

        json_writer_bool(w, "stale", unknown);
        if (!unknown)
                return;
        json_writer_string(w, "reason", why);
        write_runbook(w, node,
                      of != NULL && of->trust.doubt != LEDGER_BELIEVED ? "RemudaInventoryDoubted"
                                                                       : "RemudaAgentDown");
}

void page_agents_write(struct json_writer *w, const struct page_fleet_node *node)
{
        const struct ledger_node *of = ledger_nodes_find(node->ledger, node->name, strlen(node->name));
        uint64_t chips = 0, faults = 0;

        for (size_t i = 0; i < node->told->group_count; i++)
                chips += node->told->groups[i].total;
        for (size_t i = 0; i < node->told->chip_count; i++)
                faults += page_faults_word((enum device_health) node->told->chips[i].health) != NULL;
        json_writer_open(w, NULL, '{');
        json_writer_string(w, "node", node->name);
        json_writer_word(w, "version", page_node_text(node->told, node->told->version));
        page_fleet_write_time(w, "heard", node->heard_usec);
        write_trust(w, node, of);
        write_offers(w, node, of);
        write_libraries(w, node);
        json_writer_uint64(w, "chips", chips);
        json_writer_uint64(w, "faults", faults);
        json_writer_close(w, '}');
}
