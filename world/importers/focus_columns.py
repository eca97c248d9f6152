"""The columns of a FOCUS bill: which are read, under which names, and which the standard knows.

A column is taken by its presence and never by the version that a file claims.

Source: FOCUS specification 1.0 (2024-06), 1.1 (2024-11), 1.2 (2025-05) and 1.3 (2025-12),
https://focus.finops.org.
"""

from __future__ import annotations

from typing import Final

from world.importers.tables import Aliases

COLUMNS: Final[Aliases] = {
    "EffectiveCost": ("effectivecost", "amortizedcost"),
    "BilledCost": ("billedcost",),
    "ListCost": ("listcost",),
    "BillingCurrency": ("billingcurrency",),
    "ChargeCategory": ("chargecategory",),
    "ChargeClass": ("chargeclass",),
    "ChargePeriodStart": ("chargeperiodstart",),
    "ChargePeriodEnd": ("chargeperiodend",),
    "ChargeDescription": ("chargedescription",),
    "Provider": ("serviceprovidername", "providername", "hostprovidername", "publishername"),
    "Account": ("subaccountid", "billingaccountid"),
    "ResourceId": ("resourceid",),
    "ResourceName": ("resourcename",),
    "ResourceType": ("resourcetype",),
    "Region": ("regionid", "region"),
    "RegionName": ("regionname",),
    "ServiceCategory": ("servicecategory",),
    "ServiceName": ("servicename",),
    "SkuMeter": ("skumeter",),
    "SkuPriceDetails": ("skupricedetails",),
    "PricingCategory": ("pricingcategory",),
    "CommitmentId": ("commitmentdiscountid",),
    "CommitmentStatus": ("commitmentdiscountstatus",),
    "CommitmentType": ("commitmentdiscounttype", "commitmentdiscountcategory"),
    "Tags": ("tags",),
}
"""The columns that the importer reads, and the names they go by across FOCUS versions."""

NEEDED: Final = ("ResourceId", "ChargeCategory", "ChargePeriodStart", "ChargePeriodEnd")

SPECIFIED: Final = frozenset(
    {
        # 1.0
        "availabilityzone",
        "billedcost",
        "billingaccountid",
        "billingaccountname",
        "billingcurrency",
        "billingperiodend",
        "billingperiodstart",
        "chargecategory",
        "chargeclass",
        "chargedescription",
        "chargefrequency",
        "chargeperiodend",
        "chargeperiodstart",
        "commitmentdiscountcategory",
        "commitmentdiscountid",
        "commitmentdiscountname",
        "commitmentdiscountstatus",
        "commitmentdiscounttype",
        "consumedquantity",
        "consumedunit",
        "contractedcost",
        "contractedunitprice",
        "effectivecost",
        "invoiceissuername",
        "listcost",
        "listunitprice",
        "pricingcategory",
        "pricingquantity",
        "pricingunit",
        "providername",
        "publishername",
        "regionid",
        "regionname",
        "resourceid",
        "resourcename",
        "resourcetype",
        "servicecategory",
        "servicename",
        "skuid",
        "skupriceid",
        "subaccountid",
        "subaccountname",
        "tags",
        # 1.1
        "capacityreservationid",
        "capacityreservationstatus",
        "commitmentdiscountquantity",
        "commitmentdiscountunit",
        "servicesubcategory",
        "skumeter",
        "skupricedetails",
        # 1.2
        "billingaccounttype",
        "invoiceid",
        "pricingcurrency",
        "pricingcurrencycontractedunitprice",
        "pricingcurrencyeffectivecost",
        "pricingcurrencylistunitprice",
        "subaccounttype",
        # 1.3
        "allocatedmethoddetails",
        "allocatedmethodid",
        "allocatedresourceid",
        "allocatedresourcename",
        "allocatedtags",
        "contractapplied",
        "hostprovidername",
        "serviceprovidername",
    }
)
"""Every column of FOCUS 1.0 to 1.3. Others are tolerated, and named in the report unless ``x_``."""
