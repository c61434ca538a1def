// SPDX-License-Identifier: GPL-2.0-only
/*
 * sys/bus/event_source/devices/: the format and events, like the kernel's own x86 PMU's.
 */
#include <linux/device.h>
#include <linux/perf_event.h>
#include <asm/processor.h>

#include "vpmu_guest.h"

PMU_FORMAT_ATTR(event, "config:0-7");
PMU_FORMAT_ATTR(umask, "config:8-15");
PMU_FORMAT_ATTR(edge, "config:18");
PMU_FORMAT_ATTR(inv, "config:23");
PMU_FORMAT_ATTR(cmask, "config:24-31");

/* AMD's event select continues in bits 35:32. */
static ssize_t vg_event12_show(struct device *dev, struct device_attribute *attr, char *page)
{
	return sysfs_emit(page, "config:0-7,32-35\n");
}

static struct device_attribute format_attr_event12 =
	__ATTR(event, 0444, vg_event12_show, NULL);

#define VG_FORMAT(var, event_attr)						\
	static struct attribute *var[] = {					\
		&(event_attr).attr,						\
		&format_attr_umask.attr,					\
		&format_attr_edge.attr,						\
		&format_attr_inv.attr,						\
		&format_attr_cmask.attr,					\
		NULL								\
	}

VG_FORMAT(vg_intel_format, format_attr_event);
VG_FORMAT(vg_amd_format, format_attr_event12);

static const struct attribute_group vg_intel_format_group = {
	.name = "format",
	.attrs = vg_intel_format,
};

static const struct attribute_group vg_amd_format_group = {
	.name = "format",
	.attrs = vg_amd_format,
};

#define VG_EVENT(var, name, encoding)						\
	static struct perf_pmu_events_attr var = {				\
		.attr = __ATTR(name, 0444, perf_event_sysfs_show, NULL),	\
		.event_str = encoding,						\
	}

VG_EVENT(intel_cycles, cpu-cycles, "event=0x3c");
VG_EVENT(intel_instructions, instructions, "event=0xc0");
VG_EVENT(intel_branches, branch-instructions, "event=0xc4");
VG_EVENT(intel_branch_misses, branch-misses, "event=0xc5");
VG_EVENT(intel_cache_references, cache-references, "event=0x2e,umask=0x4f");
VG_EVENT(intel_cache_misses, cache-misses, "event=0x2e,umask=0x41");
VG_EVENT(intel_bus_cycles, bus-cycles, "event=0x3c,umask=0x01");
/* The kernel's own driver has these for fixed counter 3 and PERF_METRICS. The host knows them. */
VG_EVENT(intel_slots, slots, "event=0x00,umask=0x4");
VG_EVENT(intel_retiring, topdown-retiring, "event=0x00,umask=0x80");
VG_EVENT(intel_bad_spec, topdown-bad-spec, "event=0x00,umask=0x81");
VG_EVENT(intel_fe_bound, topdown-fe-bound, "event=0x00,umask=0x82");
VG_EVENT(intel_be_bound, topdown-be-bound, "event=0x00,umask=0x83");
VG_EVENT(intel_cycles_too, cycles, "event=0x3c");
VG_EVENT(intel_branches_too, branches, "event=0xc4");

VG_EVENT(amd_cycles, cpu-cycles, "event=0x76");
VG_EVENT(amd_branches, branch-instructions, "event=0xc2");
VG_EVENT(amd_branch_misses, branch-misses, "event=0xc3");
VG_EVENT(amd_cache_references, cache-references, "event=0x60,umask=0xff");
VG_EVENT(amd_cache_misses, cache-misses, "event=0x64,umask=0x09");
VG_EVENT(amd_cycles_too, cycles, "event=0x76");
VG_EVENT(amd_branches_too, branches, "event=0xc2");

/*
 * The last two are generic events, which perf knows by these names itself. They need a
 * name here only beside another PMU.
 */
static struct attribute *vg_intel[] = {
	&intel_cycles.attr.attr,
	&intel_instructions.attr.attr,
	&intel_branches.attr.attr,
	&intel_branch_misses.attr.attr,
	&intel_cache_references.attr.attr,
	&intel_cache_misses.attr.attr,
	&intel_bus_cycles.attr.attr,
	&intel_slots.attr.attr,
	&intel_retiring.attr.attr,
	&intel_bad_spec.attr.attr,
	&intel_fe_bound.attr.attr,
	&intel_be_bound.attr.attr,
	&intel_cycles_too.attr.attr,
	&intel_branches_too.attr.attr,
	NULL
};

static struct attribute *vg_amd[] = {
	&amd_cycles.attr.attr,
	&intel_instructions.attr.attr,
	&amd_branches.attr.attr,
	&amd_branch_misses.attr.attr,
	&amd_cache_references.attr.attr,
	&amd_cache_misses.attr.attr,
	&amd_cycles_too.attr.attr,
	&amd_branches_too.attr.attr,
	NULL
};

static umode_t vg_event_visible(struct kobject *kobj, struct attribute *attr, int i)
{
	bool topdown = attr == &intel_slots.attr.attr || strstarts(attr->name, "topdown-");
	bool too = attr == &intel_cycles_too.attr.attr || attr == &intel_branches_too.attr.attr ||
		   attr == &amd_cycles_too.attr.attr || attr == &amd_branches_too.attr.attr;

	if (topdown && !(vg.features & VPMU_PV_HAS_TOPDOWN))
		return 0;
	return vg.raw && too ? 0 : attr->mode;
}

static const struct attribute_group vg_intel_group = {
	.name = "events",
	.attrs = vg_intel,
	.is_visible = vg_event_visible,
};

static const struct attribute_group vg_amd_group = {
	.name = "events",
	.attrs = vg_amd,
	.is_visible = vg_event_visible,
};

static const struct attribute_group *vg_intel_groups[] = {
	&vg_intel_format_group,
	&vg_intel_group,
	NULL
};

static const struct attribute_group *vg_amd_groups[] = {
	&vg_amd_format_group,
	&vg_amd_group,
	NULL
};

const struct attribute_group **vg_attr_groups(void)
{
	bool amd = boot_cpu_data.x86_vendor == X86_VENDOR_AMD ||
		   boot_cpu_data.x86_vendor == X86_VENDOR_HYGON;

	return amd ? vg_amd_groups : vg_intel_groups;
}
