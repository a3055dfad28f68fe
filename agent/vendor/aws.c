/* AWS Neuron. The driver's class devices have no link to their PCI functions: the N-th by address is taken
 * for neuronN. connected_devices tells which chips NeuronLink joins. */
#include "agent/vendor/vendor.h"

/* clang-format off */
static const struct vendor_model models[] = {
        { 0x7064, "Inferentia1",  8, NULL }, { 0x7065, "Inferentia1", 8, NULL }, { 0x7066, "Inferentia1", 8, NULL },
        { 0x7067, "Inferentia1",  8, NULL }, { 0x7164, "Trainium1",  32, NULL }, { 0x7264, "Inferentia2", 32, NULL },
        { 0x7364, "Trainium2",   96, NULL }, { 0x7564, "Trainium3", 144, NULL }, { 0x7565, "Trainium3", 144, NULL },
        { 0, NULL, 0, NULL },
};
/* clang-format on */

const struct vendor vendor_aws = {
        .name = "aws",
        .runtime = "aws",
        .resource = "aws.amazon.com/neuron",
        .unsure = "that neuronN is the N-th function by address",
        .pci_vendors = { 0x1d0f },
        .models = models,
        .nodes = { { "/dev/neuron{n}", false } },
        .index_is_number = true,
        .more_resources = { "aws.amazon.com/neuroncore" },
        .container = { "AWS_NEURON_VISIBLE_DEVICES", VENDOR_BY_NUMBER, false },
        .passed_on = { "NEURON_RT_VISIBLE_CORES" }, /* counts the cores of all chips: no number of a chip */
        .subsystems = { "neuron_device" },
        .char_devices = { "neuron" },
};
