/* Self facts: the version, the libraries that are asked, what the kubelet has taken. */
#include "agent/self_facts.h"

#include "agent/inventory/dra_name.h"
#include "agent/kubelet.h"
#include "agent/probe/vendor_probe.h"
#include "base/text.h"
#include "base/version.h"

static void fill_libraries(struct agent_facts *facts, const struct vendor_probe *probe)
{
        struct vendor_probe_status s;

        for (size_t i = 0; vendor_probe_status(probe, i, &s); i++) {
                struct agent_facts_library *library = &facts->libraries[facts->library_count];

                if (!s.asked || facts->library_count >= AGENT_FACTS_LIBRARIES_MAX)
                        continue;
                (void) text_copy(library->vendor, sizeof(library->vendor), s.vendor);
                library->state = s.state;
                if (s.state == AGENT_FACTS_SILENT)
                        (void) text_copy(library->message, sizeof(library->message), s.why);
                facts->library_count++;
        }
}

static void add_offer(struct agent_facts *facts, const char *name, bool registered)
{
        struct agent_facts_offer *offer = &facts->offers[facts->offer_count];

        if (facts->offer_count >= AGENT_FACTS_OFFERS_MAX)
                return;
        (void) text_copy(offer->name, sizeof(offer->name), name);
        offer->registered = registered;
        facts->offer_count++;
}

/* Where no kubelet is there is nobody to take anything. The driver of claims is told of, unless the device
 * plugin sees no kubelet. */
static void fill_offers(struct agent_facts *facts, struct kubelet *kubelet)
{
        struct plugin_status plugin;
        struct dra_status dra;
        bool has_plugin = kubelet_status(kubelet, &plugin);

        for (size_t i = 0; has_plugin && plugin.kubelet_present && i < plugin.resource_count; i++)
                if (plugin.resources[i].devices > 0)
                        add_offer(facts, plugin.resources[i].resource,
                                  plugin.resources[i].registered && plugin.resources[i].streaming);
        if (kubelet_dra_status(kubelet, &dra) && (!has_plugin || plugin.kubelet_present))
                add_offer(facts, DRA_NAME_DRIVER, dra.registered);
}

void self_facts_fill(struct agent_facts *ret, const struct vendor_probe *probe, struct kubelet *kubelet)
{
        *ret = (struct agent_facts){ .version = REMUDA_VERSION };
        fill_libraries(ret, probe);
        fill_offers(ret, kubelet);
}
