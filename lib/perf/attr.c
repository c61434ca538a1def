// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#include <vpmu/provider.h>

int vpmu_attr_resolve(const struct vpmu_model *model, const struct vpmu_event_attr *attr,
		      uint64_t supplied, struct vpmu_recipe *recipe)
{
	const struct vpmu_event_def *def = vpmu_event_find(model, attr->select, attr->fixed);
	int err = vpmu_event_resolve(model, attr->select, attr->fixed, attr->banks, supplied,
				     recipe);

	if (err || attr->shared != VPMU_SHARED_OFFCORE_RSP ||
	    (def->extra != VPMU_EXTRA_OFFCORE_0 && def->extra != VPMU_EXTRA_OFFCORE_1))
		return err;
	return vpmu_event_offcore(attr->extra, recipe);
}
