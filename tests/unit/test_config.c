// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Invalid configurations of an embedder: one field of a good one is wrong at a time, with
 * and without a request for the reason.
 */
#include "unit.h"

#include <vpmu/arch.h>
#include <vpmu/msr.h>

#include "fake.h"
#include "pv_rig.h"

/* Everything that is pointed to, so that each test changes a copy. */
struct arch_case {
	struct vpmu_model model;
	struct vpmu_provider provider;
	struct vpmu_provider_ops provider_ops;
	struct vpmu_ops ops;
	struct vpmu_arch_config cfg;
};

static void arch_cases(struct arch_case *c, int i)
{
	switch (i) {
	case 0: c->cfg.size--; break;
	case 1: c->cfg.model = NULL; break;
	case 2: c->cfg.provider = NULL; break;
	case 3: c->provider.ops = NULL; break;
	case 4: c->cfg.ops = NULL; break;
	case 5: c->ops.size = offsetof(struct vpmu_ops, raise_pmi); break;
	case 6: c->ops.kick = NULL; break;
	case 7: c->ops.raise_pmi = NULL; break;
	case 8: c->provider_ops.size = 8; break;
	case 9: c->provider_ops.event_size = 8; break;
	case 10: c->provider_ops.event_size++; break;
	case 11: c->provider.model = &fake_model; break;
	case 12: c->model.vendor = 2; break;
	case 13: c->model.version = 0; break;
	case 14: c->model.version = 7; break;
	case 15: c->model.version_most = 7; break;
	case 16: c->model.n_gp = 0; break;
	case 17: c->model.n_gp = 33; break;
	case 18: c->model.width_bits = 31; break;
	case 19: c->model.width_bits = 64; break;
	case 20: c->model.vendor = VPMU_VENDOR_AMD; break; /* with fixed counters */
	default: fail(); break;
	}
}

static void test_arch(void **state)
{
	struct fake *f = fake_new(5, 8, 3, FAKE_CAPS);
	struct vpmu_error err;
	struct arch_case c;
	size_t size;
	int i;

	(void)state;
	assert_true(vpmu_arch_size(NULL, &size, &err) < 0);
	assert_int_equal(err.asked, 0);
	for (i = 0; i <= 20; i++) {
		fake_config(f, &c.cfg);
		c.model = fake_model;
		c.provider = f->provider;
		c.provider_ops = f->provider_ops;
		c.ops = f->ops;
		c.provider.ops = &c.provider_ops;
		c.provider.model = &c.model;
		c.cfg.model = &c.model;
		c.cfg.provider = &c.provider;
		c.cfg.ops = &c.ops;
		assert_int_equal(vpmu_arch_size(&c.cfg, &size, &err), 0);
		arch_cases(&c, i);
		memset(&err, 0, sizeof(err));
		if (vpmu_arch_size(&c.cfg, &size, &err) >= 0 || !err.what)
			fail_msg("case %d is not refused", i);
		assert_true(vpmu_arch_size(&c.cfg, &size, NULL) < 0);
	}
	fake_free(f);
}

struct pv_case {
	struct vpmu_model model;
	struct vpmu_provider_ops provider;
	struct vpmu_filter filter;
	struct vpmu_pv_config cfg;
};

static void pv_cases(struct pv_case *c, int i)
{
	switch (i) {
	case 0: c->cfg.size--; break;
	case 1: c->cfg.model = NULL; break;
	case 2: c->model.vendor = 2; break;
	case 3: c->provider.size = 8; break;
	case 4: c->provider.event_size = 8; break;
	case 5: c->provider.event_size++; break;
	case 6: c->cfg.abi = 0; break;
	case 7: c->cfg.abi = 4; break;
	case 8: c->cfg.n_vcpus = 0; break;
	case 9: c->cfg.n_vcpus = 65536; break;
	case 10: c->cfg.n_events = VPMU_PV_EVENTS_MAX + 1; break;
	case 11: c->cfg.n_slots = VPMU_PV_SLOTS + 1; break;
	case 12: c->cfg.features = 1u << 31; break;
	case 13: c->cfg.no_hypercall = true; break;
	case 14: c->cfg.period_min = VPMU_PV_LEFT_MAX + 1; break;
	case 15: c->filter.action = 9; break;
	default: fail(); break;
	}
}

static void test_pv(void **state)
{
	struct pv_rig *r = pv_rig_new(4, NULL);
	size_t vm, vcpu;
	struct vpmu_error err;
	struct pv_case c;
	int i;

	(void)state;
	assert_true(vpmu_pv_size(NULL, &vpmu_vcpu_ops, &vm, &vcpu, &err) < 0);
	assert_true(vpmu_pv_size(&r->cfg, NULL, &vm, &vcpu, &err) < 0);
	for (i = 0; i <= 15; i++) {
		memset(&c.filter, 0, sizeof(c.filter));
		c.filter.size = sizeof(c.filter);
		c.filter.action = VPMU_FILTER_ALLOW;
		c.model = r->model;
		c.provider = vpmu_vcpu_ops;
		c.cfg = r->cfg;
		c.cfg.model = &c.model;
		c.cfg.filter = &c.filter;
		assert_int_equal(vpmu_pv_size(&c.cfg, &c.provider, &vm, &vcpu, &err), 0);
		pv_cases(&c, i);
		memset(&err, 0, sizeof(err));
		if (vpmu_pv_size(&c.cfg, &c.provider, &vm, &vcpu, &err) >= 0 || !err.what)
			fail_msg("case %d is not refused", i);
		assert_true(vpmu_pv_size(&c.cfg, &c.provider, &vm, &vcpu, NULL) < 0);
		assert_true(vpmu_pv_vm_init(r->vm, &c.cfg, &c.provider, NULL) < 0);
	}
	assert_null(pv_rig_free(r));
}

static void hook_cases(struct vpmu_ops *ops, int i)
{
	switch (i) {
	case 0: ops->size = 8; break;
	case 1: ops->kick = NULL; break;
	case 2: ops->inject = NULL; break;
	case 3: ops->gpa_read = NULL; break;
	case 4: ops->gpa_write = NULL; break;
	case 5: ops->gpa_map = NULL; break;
	case 6: ops->gpa_unmap = NULL; break;
	case 7: ops->lock = NULL; break; /* one without the other */
	case 8: ops->unlock = NULL; break;
	default: fail(); break;
	}
}

/* A vCPU without a hook, in another's place, or over another's provider. */
static void test_pv_vcpu(void **state)
{
	struct pv_rig *r = pv_rig_new(4, NULL);
	struct pv_rig_vcpu *v = &r->vcpu[1];
	struct vpmu_provider *own = v->pv ? &v->vcpu.provider : NULL, other;
	struct vpmu_pv_info info;
	struct vpmu_ops ops;
	int i;

	(void)state;
	assert_int_equal(vpmu_pv_init(v->pv, r->vm, 1, own, &v->ops, v), -VPMU_EINVAL);
	vpmu_pv_fini(v->pv);
	assert_int_equal(vpmu_pv_init(v->pv, r->vm, PV_RIG_VCPUS, own, &v->ops, v), -VPMU_EINVAL);
	assert_int_equal(vpmu_pv_init(v->pv, r->vm, 1, own, NULL, v), -VPMU_EINVAL);
	assert_int_equal(vpmu_pv_init(v->pv, r->vm, 1, NULL, &v->ops, v), -VPMU_EINVAL);
	other = *own;
	other.model = &fake_model;
	assert_int_equal(vpmu_pv_init(v->pv, r->vm, 1, &other, &v->ops, v), -VPMU_EINVAL);
	other = *own;
	other.ops = &vpmu_direct_ops;
	assert_int_equal(vpmu_pv_init(v->pv, r->vm, 1, &other, &v->ops, v), -VPMU_EINVAL);
	for (i = 0; i <= 8; i++) {
		ops = v->ops;
		hook_cases(&ops, i);
		if (vpmu_pv_init(v->pv, r->vm, 1, own, &ops, v) != -VPMU_EINVAL)
			fail_msg("case %d is not refused", i);
	}
	/* Without vCPU 1 there is one less to be reset, and without both none. */
	assert_false(vpmu_pv_event_info(r->vcpu[0].pv, UINT32_MAX, &info));
	vpmu_pv_vm_reset(r->vm);
	vpmu_pv_fini(r->vcpu[0].pv);
	vpmu_pv_vm_reset(r->vm);
	assert_int_equal(vpmu_pv_init(r->vcpu[0].pv, r->vm, 0, &r->vcpu[0].vcpu.provider,
				      &r->vcpu[0].ops, &r->vcpu[0]), 0);
	assert_int_equal(vpmu_pv_init(v->pv, r->vm, 1, own, &v->ops, v), 0);
	assert_null(pv_rig_free(r));
}

/* Errors that a model's file may not have. */
static void test_models(void **state)
{
	const struct vpmu_model *intel = vpmu_model_find(VPMU_VENDOR_INTEL, 6, 106);
	const struct vpmu_model *amd = vpmu_model_find(VPMU_VENDOR_AMD, 25, 17);
	size_t bad;
	struct vpmu_model m;
	int i;

	(void)state;
	for (i = 0; i < 10; i++) {
		m = i < 6 ? *intel : *amd;
		assert_null(vpmu_model_check(&m, &bad));
		switch (i) {
		case 0: m.capabilities |= (uint64_t)1 << 40; break;
		case 1: m.capabilities |= VPMU_CAP_PEBS_FORMAT(6); break;
		case 2: m.capabilities &= ~VPMU_CAP_PEBS_BASELINE; break;
		case 3: m.version = 1; break;
		case 4: m.extensions = (uint32_t)1 << 31; break;
		case 5: m.version_most = 3; break;
		case 6: m.version = 3; break;
		case 7: m.version_most = 6; break;
		case 8: m.extensions = 1; break;
		case 9: m.width_bits = 40; break;
		}
		if (!vpmu_model_check(&m, &bad))
			fail_msg("case %d is not refused", i);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_arch),
		cmocka_unit_test(test_pv),
		cmocka_unit_test(test_pv_vcpu),
		cmocka_unit_test(test_models),
	};

	return cmocka_run_group_tests_name("config", tests, NULL, NULL);
}
